// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/target_options.h"

#include "src/cmd/common/cmd.h"

static const struct argp_option options[] = {
    {"host", 'H', "N", 0, "Only this host of the lab", 0},
    {"socket", 'S', "PATH", 0, "Control socket of the daemon; default: from the environment", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct target_options *w = state->input;

    switch (key) {
    case 'H':
        w->host = (int)parse_number(arg, 0, HOSTS_MAX - 1);
        if (w->host < 0)
            argp_error(state, "--host: invalid value \"%s\": expected a host number from 0 to %d", arg, HOSTS_MAX - 1);
        break;
    case 'S':
        w->socket = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

const struct argp_child target_options_child[] = {{&argp, 0, NULL, 8}, {0}};

int target_options_find(const struct target_options *w, struct targets *t)
{
    return targets_find(t, w->socket, w->host);
}
