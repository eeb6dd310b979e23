// SPDX-License-Identifier: BSD-2-Clause
/* pumice capture: captures the packets of running daemons. */
#include "src/cmd/capture/capture.h"

#include <argp.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/capture/capture_filter.h"
#include "src/cmd/capture/capture_run.h"
#include "src/cmd/common/target_options.h"

struct capture_options {
    struct capture c;
    struct target_options target;
    long megabytes, files;
};

static const struct argp_option options[] = {
    {"count", 'c', "N", 0, "End after N packets", 2},
    {"file-size", 'C', "MB", 0, "Begin another file after MB million bytes: FILE.0.pcapng, FILE.1.pcapng ...", 2},
    {"files", 'W', "N", 0, "With -C: after N files, overwrite the first", 2},
    {"quiet", 'q', NULL, 0, "Print only errors", 2},
    {"device", 'i', "NAME", 0, "Only this device", 3},
    {0},
};

static const char doc[] =
    "Captures the packets of running daemons as pcapng, to FILE or, with -, to standard output, until Ctrl-C. This "
    "includes packets that stay within a device. Comments name the queue pair, the program and the work request of "
    "each packet.\v"
    "Examples:\n"
    "  pumice capture trace.pcapng\n"
    "  pumice capture - | wireshark -k -i -\n"
    "  pumice capture --opcode ack --opcode cnp --snaplen 64 trace.pcapng\n"
    "  pumice capture -C 100 -W 5 trace.pcapng\n"
    "  pumice run --capture trace.pcapng -- COMMAND\n\n"
    "If the output is too slow, packets are dropped and counted. A capture never delays the traffic.";

static void finish(struct capture_options *o, struct argp_state *state)
{
    if (!o->c.out.path)
        o->c.out.path = "-";
    if (o->files && !o->megabytes)
        argp_error(state, "--files needs --file-size");
    if (o->megabytes && strcmp(o->c.out.path, "-") == 0)
        argp_error(state, "--file-size needs a file");
    if (strcmp(o->c.out.path, "-") == 0 && isatty(STDOUT_FILENO))
        argp_error(state, "no file given; to capture into a program: pumice capture - | wireshark -k -i -");
    o->c.out.size = (uint64_t)o->megabytes * 1000000;
    o->c.out.count = (unsigned)o->files;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct capture_options *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->c.request;
        state->child_inputs[1] = &o->target;
        break;
    case 'c':
        o->c.limit = (uint64_t)capture_filter_number(state, "count", arg, 1, LONG_MAX);
        break;
    case 'C':
        o->megabytes = capture_filter_number(state, "file-size", arg, 1, 1000000);
        break;
    case 'W':
        o->files = capture_filter_number(state, "files", arg, 1, 1000000);
        break;
    case 'q':
        o->c.quiet = true;
        break;
    case 'i':
        o->c.device = arg;
        break;
    case ARGP_KEY_ARG:
        if (o->c.out.path)
            argp_error(state, "unexpected argument '%s': give one file", arg);
        o->c.out.path = arg;
        break;
    case ARGP_KEY_END:
        finish(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int cmd_capture(int argc, char **argv)
{
    const struct argp_child children[] = {{&capture_filter_argp, 0, NULL, 1}, target_options_child[0], {0}};
    const struct argp argp = {options, parse, "[FILE|-]", doc, children, NULL, NULL};
    struct capture_options o = {.target = TARGET_OPTIONS_NONE};
    struct targets t;

    capture_init(&o.c, NULL);
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (target_options_find(&o.target, &t) != 0)
        return 1;
    return capture_run(&o.c, &t);
}
