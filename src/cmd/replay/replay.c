// SPDX-License-Identifier: BSD-2-Clause
/* pumice replay: runs a recorded command again, with the same faults for the same packets. */
#include "src/cmd/replay/replay.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/replay/run_arguments.h"
#include "src/cmd/run/run.h"

struct replay_options {
    const char *dir;
    struct run_arguments extra; /* options for pumice run */
    char **command; /* NULL: the recorded one */
};

enum key {
    KEY_CAPTURE = 'C',
    KEY_CAPTURE_LOST = 256,
    KEY_RECORD,
    KEY_CHECK,
    KEY_LOG_LEVEL,
    KEY_KEEP_LOGS,
};

/* Each is an option of pumice run, too. */
static const struct argp_option options[] = {
    {"record", KEY_RECORD, "DIR", 0, "Record this run, too: which of the packets were struck", 1},
    {"capture", KEY_CAPTURE, "FILE", 0, "Capture the packets that all hosts send to a pcapng file", 1},
    {"capture-lost", KEY_CAPTURE_LOST, NULL, 0, "Capture the packets that faults lose, too, at interfaces of their own",
     1},
    {"check", KEY_CHECK, NULL, 0, "Check how the programs use verbs, and tell their mistakes at the end", 1},
    {"log-level", KEY_LOG_LEVEL, "error|warn|info|debug[,AREA=LEVEL...]", 0, "Log level of the daemons", 2},
    {"keep-logs", KEY_KEEP_LOGS, NULL, 0, "Keep the daemons' logs, and print their directory", 2},
    {0},
};

static const char doc[] =
    "Runs the command of a recording (pumice run --record DIR) again, with the same options. The same packets are "
    "struck by the same faults, and no others. COMMAND, if given, takes the place of the recorded one.\v"
    "Examples:\n"
    "  pumice run --hosts 2 --fault loss=1% --record loss -- ./test\n"
    "  pumice replay loss\n"
    "  pumice replay --capture loss.pcapng --capture-lost loss\n"
    "  pumice replay loss -- gdb ./test\n\n"
    "A recording has the command that it runs. Look at its file run.json before you replay a recording of somebody "
    "else. The exit code is that of the command, as with pumice run.";

static void add_option(struct replay_options *o, int key, const char *arg)
{
    static char texts[sizeof(options) / sizeof(options[0])][4200];

    for (size_t i = 0; options[i].name; i++) {
        if (options[i].key != key)
            continue;
        snprintf(texts[i], sizeof(texts[i]), arg ? "--%s=%s" : "--%s", options[i].name, arg);
        run_arguments_add(&o->extra, texts[i]);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct replay_options *o = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (!o->dir) {
            o->dir = arg;
            break;
        }
        o->command = &state->argv[state->next - 1];
        state->next = state->argc;
        break;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no recording given; to make one: pumice run --fault loss=1%% --record DIR -- COMMAND");
        break;
    case KEY_CAPTURE:
    case KEY_CAPTURE_LOST:
    case KEY_RECORD:
    case KEY_CHECK:
    case KEY_LOG_LEVEL:
    case KEY_KEEP_LOGS:
        if (arg && strlen(arg) > 4096)
            argp_error(state, "the value of an option is too long");
        add_option(o, key, arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int cmd_replay(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "DIR [[--] COMMAND [ARGUMENT...]]", doc, NULL, NULL, NULL};
    static struct run_arguments run;
    static struct replay_options o;
    struct recording r;

    argp_err_exit_status = EXIT_OWN;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    if (recording_load(o.dir, &r) != 0)
        return EXIT_OWN;
    run_arguments_add(&run, "pumice run");
    if (run_arguments_add_options(&run, &r) != 0)
        return EXIT_OWN;
    run_arguments_add_all(&run, o.extra.argv);
    run_arguments_add(&run, "--replay");
    run_arguments_add(&run, o.dir);
    if (o.command) {
        run_arguments_add(&run, "--");
        run_arguments_add_all(&run, o.command);
    } else {
        run_arguments_add_command(&run, &r);
    }
    int code = cmd_run((int)run.n, run.argv);
    recording_free(&r);
    return code;
}
