// SPDX-License-Identifier: BSD-2-Clause
/* pumice shrink: finds the fewest faults with which a command fails. It records a run that fails, and runs the command
 * again and again with a part of the recorded decisions. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/json_member.h"
#include "src/cmd/replay/ddmin.h"
#include "src/cmd/replay/replay.h"
#include "src/cmd/replay/run_arguments.h"
#include "src/cmd/replay/trial.h"

#define TIMES_MAX 1000000
#define SEEDS_MAX 1000000000
#define EXIT_NEVER_FAILED 1
#define SHOWN_MAX 20

struct shrink {
    long times, seeds;
    const char *output, *from; /* directories; from NULL: a new recording */
    struct run_arguments given; /* what pumice run gets: options and command; with from, only a command */
    struct run_arguments options, command; /* of each trial */
    struct recording failing; /* the smallest that is known to fail */
    struct recording all; /* the first one */
    int code; /* exit code that means that the command fails */
    unsigned runs;
};

enum key {
    KEY_OUTPUT = 'o',
    KEY_TIMES = 256,
    KEY_SEEDS,
    KEY_FROM,
};

static const struct argp_option options[] = {
    {"times", KEY_TIMES, "N", 0, "Run COMMAND up to N times with each set of faults, until it fails; default: 1", 1},
    {"seeds", KEY_SEEDS, "N", 0, "Try the seeds 1 to N until COMMAND fails; default: only seed 1", 1},
    {"from", KEY_FROM, "DIR", 0, "Begin with this recording of a run that failed", 1},
    {"output", KEY_OUTPUT, "DIR", 0, "Directory for the result, a recording; default: shrunk", 1},
    {0},
};

static const char doc[] =
    "Finds the smallest set of faults with which COMMAND still fails, and prints them. The result is a recording, "
    "which "
    "pumice replay repeats. All other options are those of pumice run, and say which faults to begin with.\v"
    "Examples:\n"
    "  pumice shrink --fault loss=1% -- ./test\n"
    "  pumice shrink --times 5 --seeds 100 --hosts 2 --fault loss=1%,dup=1% -- ./test\n"
    "  pumice shrink --from recording\n"
    "  pumice replay shrunk\n\n"
    "COMMAND fails if it ends with the same exit code as at first. For a command that may hang, use timeout(1). The "
    "exit "
    "code is 0 if the faults were found, 1 if COMMAND never fails or fails without faults, too, and 125 if pumice "
    "itself "
    "or one of its daemons failed.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct shrink *s = state->input;

    switch (key) {
    case KEY_TIMES:
        s->times = parse_number(arg, 1, TIMES_MAX);
        if (s->times < 0)
            argp_error(state, "--times: invalid value \"%s\": expected a number from 1 to %d", arg, TIMES_MAX);
        break;
    case KEY_SEEDS:
        s->seeds = parse_number(arg, 1, SEEDS_MAX);
        if (s->seeds < 0)
            argp_error(state, "--seeds: invalid value \"%s\": expected a number from 1 to %d", arg, SEEDS_MAX);
        break;
    case KEY_FROM:
        s->from = arg;
        break;
    case KEY_OUTPUT:
        s->output = arg;
        break;
    case ARGP_KEY_END:
        if (!s->from && s->given.n == 0)
            argp_error(state, "no command given; for example: pumice shrink --fault loss=1%% -- ./test");
        if (s->from && s->given.n && strcmp(s->given.argv[0], "--") != 0)
            argp_error(state, "--from takes the options of its recording: give no others, and -- before a command");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Is the word one of this command's options? 2: the next word is its value. */
static unsigned own_words(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "--usage") == 0 || strcmp(word, "-?") == 0)
        return 1;
    if (strncmp(word, "-o", 2) == 0)
        return word[2] ? 1 : 2;
    for (size_t i = 0; options[i].name; i++) {
        size_t n = strlen(options[i].name);

        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, options[i].name, n) == 0 &&
            (word[2 + n] == 0 || word[2 + n] == '='))
            return word[2 + n] ? 1 : 2;
    }
    return 0;
}

static bool has_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return true;
    return false;
}

/* Divides the words: own gets this command's options, and s->given gets all others. Without --, this command's options
 * end at the first other word, because the rest may belong to the command. */
static void divide(int argc, char **argv, struct run_arguments *own, struct shrink *s)
{
    bool anywhere = has_dashes(argc, argv);
    int i = 1;

    run_arguments_add(own, argv[0]);
    while (i < argc && strcmp(argv[i], "--") != 0) {
        unsigned n = own_words(argv[i]);

        if (n == 0 && !anywhere)
            break;
        if (n == 0)
            run_arguments_add(&s->given, argv[i++]);
        for (; n && i < argc; n--)
            run_arguments_add(own, argv[i++]);
    }
    run_arguments_add_all(&s->given, argv + i);
}

/* --- the first failing run --------------------------------------------------------------------- */

/* Records runs with one seed after the other, until one fails. Returns its exit code, 0: none failed, -1: an error was
 * printed, or the user has stopped it. */
static int record_failing(struct shrink *s)
{
    char seed[32], dir[PATH_MAX];
    int code = 0;

    trial_dir(s->output, TRIAL_FIRST, dir);
    for (long i = 1; i <= s->seeds && code == 0; i++) {
        struct run_arguments run = {0};

        run_arguments_add(&run, "pumice");
        run_arguments_add(&run, "run");
        if (s->seeds > 1) {
            snprintf(seed, sizeof(seed), "--seed=%ld", i);
            run_arguments_add(&run, seed);
        }
        run_arguments_add(&run, "--record");
        run_arguments_add(&run, dir);
        run_arguments_add_all(&run, s->given.argv);
        s->runs++;
        code = trial_run(s->output, run.argv);
    }
    return code;
}

/* Loads the recording of a run that failed. Returns 0 or an exit code, after printing an error. */
static int begin(struct shrink *s)
{
    char dir[PATH_MAX];

    if (s->from) {
        if (recording_load(s->from, &s->all) != 0)
            return EXIT_OWN;
        s->code = (int)member_whole(s->all.run, "exit_code");
        if (s->code == 0) {
            say("%s is the recording of a run that did not fail", s->from);
            return EXIT_NEVER_FAILED;
        }
        return 0;
    }
    s->code = record_failing(s);
    if (s->code < 0)
        return EXIT_OWN;
    if (s->code == 0) {
        say("the command did not fail in %u run%s: use more faults, or --seeds to try more seeds", s->runs,
            s->runs == 1 ? "" : "s");
        return EXIT_NEVER_FAILED;
    }
    trial_dir(s->output, TRIAL_FIRST, dir);
    return recording_load(dir, &s->all) == 0 ? 0 : EXIT_OWN;
}

/* The command that was given takes the place of the recorded one. given.argv[0] is --. */
static void replace_command(struct shrink *s)
{
    json_t *list = json_array();

    for (size_t i = 1; i < s->given.n; i++)
        json_array_append_new(list, json_string(s->given.argv[i]));
    json_object_set_new(s->all.run, "command", list);
}

/* --- trials ------------------------------------------------------------------------------------ */

static bool is_response(const struct host_decision *d)
{
    return d->decision.packet.stream == PM_STREAM_RESPONSE;
}

/* Marks those decisions of the trial that struck no packet. A response may have struck under another name. */
static void find_unused(const struct recording *trial, const struct recording *seen, bool *unused)
{
    for (size_t i = 0; i < trial->n; i++)
        unused[i] = !is_response(&trial->decision[i]) &&
                    (seen->n == 0 ||
                     !bsearch(&trial->decision[i], seen->decision, seen->n, sizeof(*seen->decision), decision_compare));
}

/* Writes the decisions down as the smallest known. */
static bool keep(struct shrink *s, const struct recording *trial, const bool *unused)
{
    size_t n = 0;

    for (size_t i = 0; i < trial->n; i++)
        if (!unused[i])
            s->failing.decision[n++] = trial->decision[i];
    s->failing.n = n;
    json_object_set_new(s->failing.run, "decisions", json_integer((json_int_t)n));
    return recording_save(s->output, &s->failing) == 0;
}

/* Runs the command with some of the decisions, up to s->times times. */
static enum ddmin_result test_items(void *ctx, const size_t *item, size_t n, bool *unused)
{
    struct shrink *s = ctx;
    struct recording trial = {.run = s->all.run, .decision = calloc(n + 1, sizeof(*trial.decision)), .n = n}, seen;
    char plan[PATH_MAX], record[PATH_MAX];
    struct run_arguments run = {0};
    int code = 0;

    trial_dir(s->output, TRIAL_PLAN, plan);
    trial_dir(s->output, TRIAL_SEEN, record);
    for (size_t i = 0; trial.decision && i < n; i++)
        trial.decision[i] = s->all.decision[item[i]];
    if (!trial.decision || recording_prepare(plan) != 0 || recording_save(plan, &trial) != 0) {
        free(trial.decision);
        return DDMIN_STOP;
    }
    run_arguments_add_all(&run, s->options.argv);
    run_arguments_add_all(&run, (char *[]){"--replay", plan, "--record", record, NULL});
    run_arguments_add_all(&run, s->command.argv);
    for (long i = 0; i < s->times && code >= 0 && code != s->code; i++) {
        s->runs++;
        code = trial_run(s->output, run.argv);
    }
    enum ddmin_result result = code < 0 ? DDMIN_STOP : code == s->code ? DDMIN_FAILS : DDMIN_PASSES;
    if (result == DDMIN_FAILS && recording_load(record, &seen) == 0) {
        find_unused(&trial, &seen, unused);
        recording_free(&seen);
        if (!keep(s, &trial, unused) || !trial_keep_output(s->output))
            result = DDMIN_STOP;
        else if (n)
            say("run %u: the command fails with %zu of %zu faults", s->runs, s->failing.n, s->all.n);
    }
    free(trial.decision);
    return result;
}

/* --- the result -------------------------------------------------------------------------------- */

static void tell(const struct shrink *s, bool stopped)
{
    char sentence[DECISION_LINE_MAX];

    say("%s%zu of %zu faults are enough (%u runs):", stopped ? "stopped; so far, " : "", s->failing.n, s->all.n,
        s->runs);
    for (size_t i = 0; i < s->failing.n && i < SHOWN_MAX; i++) {
        decision_to_sentence(&s->failing.decision[i], sentence);
        printf("%s\n", sentence);
    }
    if (s->failing.n > SHOWN_MAX)
        printf("and %zu more, see %s/decisions.jsonl\n", s->failing.n - SHOWN_MAX, s->output);
    printf("to repeat: pumice replay %s\n", s->output);
    fflush(stdout);
}

/* Checks that the recording fails again, and not without its faults. Returns 0 or an exit code. */
static int confirm(struct shrink *s, size_t *item, bool *unused)
{
    enum ddmin_result result = test_items(s, item, s->all.n, unused);

    if (result == DDMIN_PASSES) {
        say("the command failed with exit code %d, but not again with the same faults: the failure depends on more "
            "than "
            "these; --times N runs it more often",
            s->code);
        return EXIT_NEVER_FAILED;
    }
    if (result == DDMIN_FAILS)
        result = test_items(s, item, 0, (bool[1]){false});
    if (result == DDMIN_FAILS) {
        say("the command fails without faults, too; its output is in %s/output.txt", s->output);
        return EXIT_NEVER_FAILED;
    }
    return result == DDMIN_STOP ? EXIT_OWN : 0;
}

static int search(struct shrink *s)
{
    size_t *item = calloc(s->all.n + 1, sizeof(*item)), n = 0;
    bool *unused = calloc(s->all.n + 1, sizeof(*unused));

    s->failing.decision = calloc(s->all.n + 1, sizeof(*s->failing.decision));
    s->failing.run = json_deep_copy(s->all.run);
    if (!item || !unused || !s->failing.decision || !s->failing.run) {
        say("out of memory");
        return EXIT_OWN;
    }
    for (size_t i = 0; i < s->all.n; i++)
        item[i] = i;
    int code = confirm(s, item, unused);
    if (code == 0) {
        for (size_t i = 0; i < s->all.n; i++)
            if (!unused[i])
                item[n++] = i;
        ddmin(item, n, test_items, s);
        /* The last trial was one that passes, and a trial without faults was kept before. */
        tell(s, trial_stopped());
        code = trial_stopped() ? 128 + SIGINT : 0;
    }
    free(item);
    free(unused);
    recording_free(&s->failing);
    return code;
}

int cmd_shrink(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "[PUMICE-RUN-OPTION...] [--] COMMAND [ARGUMENT...]", doc, NULL,
                                     NULL,    NULL};
    static struct shrink s = {.times = 1, .seeds = 1, .output = "shrunk"};
    static struct run_arguments own;

    divide(argc, argv, &own, &s);
    argp_err_exit_status = EXIT_OWN;
    argp_parse(&argp, (int)own.n, own.argv, 0, NULL, &s);
    if (recording_prepare(s.output) != 0)
        return EXIT_OWN;
    trial_catch_signals();
    int code = begin(&s);
    if (code == 0) {
        run_arguments_add_all(&s.options, (char *[]){"pumice", "run", NULL});
        if (run_arguments_add_options(&s.options, &s.all) != 0)
            code = EXIT_OWN;
        if (s.from && s.given.n)
            replace_command(&s);
        run_arguments_add_command(&s.command, &s.all);
    }
    if (code == 0)
        code = search(&s);
    trial_clean(s.output);
    recording_free(&s.all);
    return code;
}
