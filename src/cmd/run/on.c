// SPDX-License-Identifier: BSD-2-Clause
/* pumice on: runs a command on one host of a lab. */
#include "src/cmd/run/run.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/targets.h"
#include "src/cmd/run/program.h"

struct on_options {
    const char *host;
    char **command;
};

static const char doc[] =
    "Runs COMMAND on the virtual host number HOST (0, 1, ...). For use within pumice run --hosts N.\v"
    "Example:\n"
    "  pumice run --hosts 2 -- sh -c 'pumice on 0 -- ib_send_lat & sleep 1; pumice on 1 -- ib_send_lat 127.0.0.1'\n\n"
    "The exit code is that of COMMAND; 127 if there is no such command, 126 if it can't be executed, 125 if there is "
    "no such host.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct on_options *o = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (!o->host) {
            o->host = arg;
            break;
        }
        o->command = &state->argv[state->next - 1];
        state->next = state->argc;
        break;
    case ARGP_KEY_END:
        if (!o->command)
            argp_error(state, o->host ? "no command given" : "no host and no command given");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int cmd_on(int argc, char **argv)
{
    static const struct argp argp = {NULL, parse, "HOST [--] COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL};
    struct on_options o = {0};
    char socket[SOCKET_PATH_MAX], number[12];
    unsigned hosts = 0;
    const char *lab;
    long host;

    argp_err_exit_status = EXIT_OWN;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    lab = targets_env_lab(&hosts);
    if (!lab) {
        if (!getenv(PM_ENV_LAB))
            say("pumice on works only inside of pumice run --hosts N -- ...");
        return EXIT_OWN;
    }
    host = parse_number(o.host, 0, hosts - 1);
    if (host < 0) {
        say("there is no host '%s': the hosts of this lab are 0 to %u", o.host, hosts - 1);
        return EXIT_OWN;
    }
    if (targets_lab_socket(lab, (unsigned)host, socket) != 0) {
        say("the path of the lab's directory is too long: %s", lab);
        return EXIT_OWN;
    }
    snprintf(number, sizeof(number), "%u", (unsigned)host);
    setenv(PM_ENV_HOST, number, 1);
    setenv(PM_ENV_SOCKET, socket, 1);
    program_exec(o.command);
}
