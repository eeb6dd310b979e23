// SPDX-License-Identifier: BSD-2-Clause
/* pumice env: prints the environment for programs that use a running daemon. */
#include "src/cmd/run/run.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/paths.h"
#include "src/cmd/common/targets.h"
#include "src/cmd/run/program.h"

static const struct argp_option options[] = {
    {"socket", 'S', "PATH", 0, "Control socket of the daemon; default: PUMICE_SOCKET, or the usual paths", 0},
    {0},
};

static const char doc[] = "Prints shell commands that set the environment for programs that use a running daemon.\v"
                          "Example:\n"
                          "  pumiced &\n"
                          "  eval \"$(pumice env)\"\n"
                          "  ibv_devinfo\n\n"
                          "If no daemon answers, it prints nothing to standard output and the exit code is 1.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **socket = state->input;

    switch (key) {
    case 'S':
        *socket = arg;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s': pumice env takes no arguments", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Prints a shell command that exports a variable. The value is quoted. */
static void print_quoted(const char *name, const char *text)
{
    printf("export %s='", name);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    puts("'");
}

/* Checks that a daemon with this version of the interface answers. Returns 0, or -1 after printing an error. */
static int check(const char *path)
{
    static struct pm_list_rep rep;
    struct control_call call = {.op = PM_OP_LIST, .rep = &rep, .rep_len = sizeof(rep)};
    int sock = control_open(path);
    int err = sock < 0 ? sock : control_call(sock, &call);

    if (sock >= 0)
        close(sock);
    if (err) {
        control_explain(path, err, call.why);
        return -1;
    }
    if (call.rep_len < sizeof(rep.abi_version) || rep.abi_version != PM_ABI_VERSION) {
        say("the daemon at %s has version %u of the interface, this command has version %u: install both from one "
            "release",
            path, rep.abi_version, PM_ABI_VERSION);
        return -1;
    }
    return 0;
}

int cmd_env(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    char library[PATH_MAX], preload[4 * PATH_MAX], path[PATH_MAX];
    const char *socket = NULL;
    struct targets t;

    argp_parse(&argp, argc, argv, 0, NULL, &socket);
    if (targets_find(&t, socket, -1) != 0)
        return 1;
    if (t.lab) {
        say("within pumice run the environment is already set");
        return 1;
    }
    if (check(t.socket) != 0 || !paths_library(library) || program_preload(library, preload, sizeof(preload)) != 0)
        return 1;
    if (getenv(PM_ENV_LAB)) /* these variables would take precedence over the socket */
        puts("unset " PM_ENV_LAB " " PM_ENV_HOSTS " " PM_ENV_HOST " " PM_ENV_SPREAD);
    print_quoted(PM_ENV_SOCKET, realpath(t.socket, path) ? path : t.socket);
    print_quoted("LD_PRELOAD", preload);
    return 0;
}
