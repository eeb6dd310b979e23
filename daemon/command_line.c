// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/command_line.h"

#include <argp.h>
#include <string.h>

#include "daemon/options.h"
#include "daemon/server/server.h"
#include "pumice/version.h"

const char *argp_program_version = "pumiced " PUMICE_VERSION;

static const char doc[] =
    "RDMA verbs in user space: the daemon of one host. It speaks RoCEv2 over UDP for programs that run with Pumice's "
    "libibverbs. It stays in the foreground, needs no root, and runs without any option."
    "\v"
    "Without --device or --address there is one device, pumice0, on the first address that is not on the loopback "
    "interface, or else on 127.0.0.1. If a service manager passes a socket (sd_listen_fds), that is the control "
    "socket. "
    "Without such a socket and without --socket, it is the first of $XDG_RUNTIME_DIR/pumice/pumiced.sock, "
    "/run/pumice/pumiced.sock and /tmp/pumice-UID/pumiced.sock whose directory exists or can be made.\n\n"
    "SIGTERM and SIGINT end the daemon in order. Exit codes: 0 the daemon ended in order; 1 out of memory, threads or "
    "files; 2 wrong command line or configuration file; 3 the address of a device is not an address of this machine, "
    "or "
    "its UDP port 4791 is taken; 4 the daemon can't make the control socket, or another daemon uses it.";

/* The key of option i is KEY_FIRST + i, above all letters. */
#define KEY_FIRST 256

struct parsed {
    struct settings *settings; /* NULL: the values are not of interest */
    const char *config; /* the value of --config; NULL: not given */
};

static const struct option_def *option_of_key(int key)
{
    for (const struct option_def *o = options; o->name; o++) {
        if (key == KEY_FIRST + (int)(o - options) || (o->letter && key == o->letter))
            return o;
    }
    return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct parsed *p = state->input;
    const struct option_def *o = option_of_key(key);
    char why[ERROR_TEXT_MAX];

    if (key == ARGP_KEY_ARG)
        argp_error(state, "unexpected argument \"%s\": pumiced takes options only", arg);
    if (!o)
        return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
    if (strcmp(o->name, "config") == 0)
        p->config = arg;
    if (!o->set || !p->settings)
        return 0;
    if (option_set(o, p->settings, arg, why) != 0)
        argp_error(state, "--%s", why);
    return 0;
}

const char *command_line_read(int argc, char **argv, struct settings *s)
{
    struct argp_option list[OPTIONS_MAX + 1] = {{0}};
    struct argp parser = {.options = list, .parser = parse, .doc = doc};
    struct parsed p = {.settings = s};

    for (const struct option_def *o = options; o->name; o++) {
        list[o - options] = (struct argp_option){
            .name = o->name,
            .key = o->letter ? o->letter : KEY_FIRST + (int)(o - options),
            .arg = o->argument,
            .doc = o->help,
            .group = o->help_group,
        };
    }
    argp_err_exit_status = EXIT_BAD_CONFIG;
    argp_parse(&parser, argc, argv, 0, NULL, &p);
    return p.config;
}
