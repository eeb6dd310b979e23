// SPDX-License-Identifier: BSD-2-Clause
/* The `pumice` command: finds the subcommand in a table and calls it. */
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pumice/version.h"
#include "src/cmd/capture/capture.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/inspect/inspect.h"
#include "src/cmd/net/net.h"
#include "src/cmd/rdma/rdma.h"
#include "src/cmd/replay/replay.h"
#include "src/cmd/run/run.h"

static const struct command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", cmd_run, "run a command with private virtual hosts, which end with it"},
    {"on", cmd_on, "within pumice run --hosts N: run a command on one of the hosts"},
    {"env", cmd_env, "print the environment for programs that use a running daemon"},
    {"status", cmd_status, "show devices, objects, QP states and counters"},
    {"dev", cmd_dev, "show devices, with the words of iproute2's rdma"},
    {"link", cmd_link, "show the ports of devices, with the words of rdma"},
    {"res", cmd_res, "show the objects of programs (QPs, CQs, MRs, PDs, ...), with the words of rdma"},
    {"why", cmd_why, "explain what a queue pair waits for, or why it failed"},
    {"top", cmd_top, "show devices and queue pairs with their rates, periodically"},
    {"ping", cmd_ping, "check that small and large packets reach another host, and their answers this one"},
    {"doctor", cmd_doctor, "find problems of this machine that stop Pumice, and say how to fix them"},
    {"tm", cmd_tm, "show tag matching: lists, traces, why a message was unexpected"},
    {"replay", cmd_replay, "run a recorded command again, with the same faults for the same packets"},
    {"shrink", cmd_shrink, "find the fewest faults with which a command fails"},
    {"fault", cmd_fault, "change the injected faults of running daemons"},
    {"capture", cmd_capture, "capture packets for Wireshark, live or to a file"},
    {"extcap", cmd_extcap, "list Pumice's devices in Wireshark, and capture for it (Wireshark calls this)"},
    {"lint", cmd_lint, "find violations of the RoCEv2 protocol in a capture"},
    {"ladder", cmd_ladder, "draw a capture as a sequence diagram (SVG or HTML)"},
    {"plot", cmd_plot, "draw sequence numbers, throughput and round trips of a capture (SVG)"},
    {"layout", cmd_layout, "explain where the bytes of windows over non-contiguous memory are"},
};
#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *to)
{
    fputs("Usage: pumice COMMAND [OPTION...]\n"
          "RDMA verbs for unmodified programs, without RDMA hardware, kernel modules or root.\n\n",
          to);
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
    fputs("\nTwo virtual hosts, a server on one and a client on the other:\n"
          "  pumice run --hosts 2 -- sh -c 'pumice on 0 -- ibv_rc_pingpong -g 0 &\n"
          "      sleep 1; pumice on 1 -- ibv_rc_pingpong -g 0 127.0.0.1'\n\n"
          "For more about a command: pumice COMMAND --help, and the man pages pumice(1) and pumiced(8).\n",
          to);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

#define WORD_MAX 16

/* The number of letters to add, remove or change to turn a into b (the Levenshtein distance). */
static unsigned distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    unsigned row[WORD_MAX + 1];

    if (la > WORD_MAX || lb > WORD_MAX)
        return WORD_MAX;
    for (unsigned j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[lb];
}

static int unknown(const char *name)
{
    const struct command *nearest = NULL;
    unsigned least = 3; /* a name with more than two changes is no typing error */

    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        unsigned d = distance(name, commands[i].name);

        if (d < least) {
            least = d;
            nearest = &commands[i];
        }
    }
    if (nearest)
        say("unknown command '%s'; did you mean '%s'?", name, nearest->name);
    else
        say("unknown command '%s'; to run a program: pumice run -- %s", name, name);
    fputs("Commands:", stderr);
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        fprintf(stderr, " %s", commands[i].name);
    fputs(" (pumice --help explains them)\n", stderr);
    return EXIT_OWN;
}

/* True if Wireshark calls this program. The program's name is then the one in Wireshark's extcap folder. */
static bool is_extcap(const char *name)
{
    const char *slash = strrchr(name, '/');

    return strcmp(slash ? slash + 1 : name, "pumice-extcap") == 0;
}

int main(int argc, char **argv)
{
    char title[WORD_MAX + 16], wants_help[] = "--help";

    setlocale(LC_CTYPE, ""); /* so that tables know the widths of characters */
    if (argc > 0 && is_extcap(argv[0]))
        return cmd_extcap(argc, argv);

    if (argc < 2) {
        help(stderr);
        return EXIT_OWN;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("pumice " PUMICE_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "-?") == 0) {
        help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "help") == 0) {
        if (argc < 3) {
            help(stdout);
            return 0;
        }
        argv[1] = argv[2];
        argv[2] = wants_help;
        argc = 3;
    }
    const struct command *c = find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    snprintf(title, sizeof(title), "pumice %s", c->name);
    argv[1] = title; /* argp begins its messages with this name */
    return c->main(argc - 1, argv + 1);
}
