// SPDX-License-Identifier: BSD-2-Clause
/* pumice fault: changes the injected faults of running daemons. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/fault_request.h"
#include "src/cmd/common/target_options.h"

struct fault_options {
    const char *spec, *script;
    struct target_options target;
    uint64_t seed;
};

enum key {
    KEY_SCRIPT = 256,
};

static const struct argp_option options[] = {
    {"seed", 's', "S", 0, "Seed of the faults; default: 1", 0},
    {"script", KEY_SCRIPT, "FILE", 0, "Also follow a timeline of faults, from now on; -: standard input", 0},
    {0},
};

static const char doc[] =
    "Sets the faults that running daemons apply to the packets they send; in a lab, on all hosts. "
    "SPEC replaces the faults that were set before. off ends all faults.\v"
    "Example:\n"
    "  pumice fault loss=5%,dup=2%,reorder=5%\n"
    "  pumice fault 'peer=127.0.0.2,loss=100%'\n"
    "  pumice fault 'drop=REQ#1;drop=DREQ#1'\n"
    "  pumice fault link=down,from=2s,for=500ms\n"
    "  pumice fault --script storm.faults\n"
    "  pumice fault off\n\n"
    "SPEC is NAME=VALUE,NAME=VALUE,...; a semicolon begins another rule. loss, ack-loss, dup, "
    "corrupt, truncate, reorder and rnr (refused messages) take a percentage; delay, jitter and "
    "reorder-by take a time (50us); mask takes 64 bits; link is down or up; daemon is killed. peer, "
    "qpn, src-qpn, message and only (a class such as send, read-request, nak, tm-fin, cm or REQ) "
    "limit a rule to some packets; from, until, after, for and count to some time or number. "
    "drop=REP#1 drops the first REP of each device. A script has lines such as\n"
    "  at 2s: link down for 500ms\n"
    "  after 1000 packets of qp 0x11: drop 3\n"
    "See pumice-fault(1).";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct fault_options *o = state->input;
    char *end;

    switch (key) {
    case 's':
        errno = 0;
        o->seed = strtoull(arg, &end, 0);
        if (errno || *end || arg[0] < '0' || arg[0] > '9')
            argp_error(state, "--seed: invalid value \"%s\": expected a number, such as 7 or 0x7f", arg);
        break;
    case KEY_SCRIPT:
        o->script = arg;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case ARGP_KEY_ARG:
        if (o->spec)
            argp_error(state, "unexpected argument '%s': give one specification, with commas and without spaces", arg);
        o->spec = arg;
        break;
    case ARGP_KEY_END:
        if (!o->spec && !o->script)
            argp_error(state, "no faults given; give for example loss=1%%, or off, or --script FILE");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int cmd_fault(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "[SPEC|off]", doc, target_options_child, NULL, NULL};
    struct fault_options o = {.target = TARGET_OPTIONS_NONE, .seed = 1};
    char path[SOCKET_PATH_MAX];
    struct fault_request r;
    struct targets t;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!o.spec || strcmp(o.spec, "off") == 0)
        o.spec = "";
    if (fault_request_init(&r, o.spec, o.script, o.seed) != 0 || target_options_find(&o.target, &t) != 0)
        return 1;
    fault_request_start(&r);
    if (t.first >= 0)
        targets_env_lab(&r.req.hosts);
    /* The change is not atomic over all hosts. But an invalid specification changes none: the first daemon
     * refuses it. */
    for (unsigned i = 0; i < t.n; i++) {
        targets_socket(&t, i, path);
        if (fault_request_send(&r, path, t.first < 0 ? 0 : (unsigned)t.first + i) != 0)
            return 1;
    }
    return 0;
}
