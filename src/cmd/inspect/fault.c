// SPDX-License-Identifier: BSD-2-Clause
/* pumice fault: changes the injected faults of running daemons. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/target_options.h"

struct fault_options {
    const char *spec;
    struct target_options target;
    uint64_t seed;
};

static const struct argp_option options[] = {
    {"seed", 's', "S", 0, "Seed of the faults; default: 1", 0},
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
    "  pumice fault off\n\n"
    "SPEC is NAME=VALUE,NAME=VALUE,...; a semicolon begins another rule. loss, ack-loss, dup, "
    "corrupt, truncate, reorder and rnr (refused messages) take a percentage; delay, jitter and "
    "reorder-by take a time (50us); mask takes 64 bits; link is down or up; daemon is killed. peer, "
    "qpn, src-qpn, message and only (a class such as send, read-request, nak, tm-fin, cm or REQ) "
    "limit a rule to some packets; from, until, after, for and count to some time or number. "
    "drop=REP#1 drops the first REP of each device. See pumice-fault(1).";

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
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case ARGP_KEY_ARG:
        if (o->spec)
            argp_error(state, "unexpected argument '%s': give one specification, with commas and without spaces", arg);
        o->spec = arg;
        break;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no faults given; give for example loss=1%%, or off");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int set_one(const char *path, const struct pm_fault_req *req)
{
    struct control_call call = {.op = PM_OP_FAULT, .req = req, .req_len = sizeof(*req)};
    int sock = control_open(path);

    if (sock < 0) {
        control_explain(path, sock, "");
        return -1;
    }
    int err = control_call(sock, &call);
    close(sock);
    if (err && call.why[0])
        say("%s", call.why);
    else if (err)
        control_explain(path, err, "");
    return err ? -1 : 0;
}

int cmd_fault(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "SPEC|off", doc, target_options_child, NULL, NULL};
    struct fault_options o = {.target = TARGET_OPTIONS_NONE, .seed = 1};
    struct pm_fault_req req = {0};
    char path[SOCKET_PATH_MAX];
    struct targets t;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (strcmp(o.spec, "off") == 0)
        o.spec = "";
    if (strlen(o.spec) >= sizeof(req.spec)) {
        say("the specification has %zu characters: at most %zu are possible", strlen(o.spec), sizeof(req.spec) - 1);
        return 1;
    }
    strcpy(req.spec, o.spec);
    req.seed = o.seed;
    if (target_options_find(&o.target, &t) != 0)
        return 1;
    /* The change is not atomic over all hosts. But an invalid specification changes none: the first daemon
     * refuses it. */
    for (unsigned i = 0; i < t.n; i++) {
        targets_socket(&t, i, path);
        if (set_one(path, &req) != 0)
            return 1;
    }
    return 0;
}
