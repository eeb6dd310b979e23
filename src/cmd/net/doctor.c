// SPDX-License-Identifier: BSD-2-Clause
/* pumice doctor: finds problems of this machine that stop Pumice, and prints how to fix them. */
#include "src/cmd/net/net.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/net/check_cm.h"
#include "src/cmd/net/check_network.h"
#include "src/cmd/net/check_symbols.h"
#include "src/cmd/net/check_system.h"

struct doctor_options {
    struct target_options target;
    bool json, quiet, strict;
    const char *sysroot;
    const char *program; /* NULL: none */
};
enum { KEY_SYSROOT = 256, KEY_STRICT };

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {"quiet", 'q', NULL, 0, "Print only checks that are not ok", 0},
    {"strict", KEY_STRICT, NULL, 0, "Count warnings as failures in the exit code", 0},
    {"sysroot", KEY_SYSROOT, "DIR", OPTION_HIDDEN, "Read /proc, /sys and /dev/shm below DIR, for tests", 0},
    {0},
};

static const char doc[] =
    "Checks this machine for all known problems that stop Pumice, and prints how to fix each of them. It needs no root "
    "and no daemon, and changes nothing. With FILE, a program or a library, it also checks whether the client library "
    "has all symbols that this file and its libraries import from libibverbs; the file does not run.\v"
    "Exit code: 0 if Pumice works here, 1 if something stops it.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct doctor_options *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case 'j':
        o->json = true;
        break;
    case 'q':
        o->quiet = true;
        break;
    case KEY_STRICT:
        o->strict = true;
        break;
    case KEY_SYSROOT:
        o->sysroot = arg;
        break;
    case ARGP_KEY_ARG:
        if (o->program)
            argp_error(state, "unexpected argument '%s': pumice doctor takes one file at most", arg);
        o->program = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Adds the finding that no daemon answers. That is a problem only if the user named the daemon (--socket) or may not
 * connect to it. */
static void report_no_daemon(struct doctor_report *report, const struct target_options *w, const char *path, int err)
{
    char users[256];

    if (err == -EACCES) {
        control_users(path, users, sizeof(users));
        doctor_report_add(report, "running", FINDING_WARN, "use pumice run, which starts a private daemon", "%s: %s",
                          path, users);
    } else if (w->socket) {
        doctor_report_add(report, "running", FINDING_FAIL, "start one: pumiced --socket PATH",
                          "no daemon answers at %s", path);
    } else {
        doctor_report_add(report, "running", FINDING_OK, "",
                          "no daemon is running now (pumice run starts a private one)");
    }
}

/* Reads the autogroup of a process ("/autogroup-N"). The kernel shares processors between these groups first. Returns
 * false if the process is in no autogroup, or this kernel has none. The session ID can't be used here: it is 0 if the
 * leader of the session is outside of this PID namespace. */
static bool autogroup(const struct doctor_report *report, pid_t pid, char *group, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/autogroup", (int)pid);
    if (!doctor_report_read(report, path, group, size))
        return false;
    group[strcspn(group, " ")] = 0;
    return true;
}

/* Checks whether the daemon is in the session of this command. The kernel shares processors between sessions first, so
 * sessions matter when the daemon and its programs share a processor: the daemon answers faster in their session
 * (docs/mpi.md). With socket activation, the peer of the socket is the service manager, which is also in another
 * session. */
static void check_session(struct doctor_report *report, int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    char on[16], ours[64], its[64];

    if (!doctor_report_read(report, "/proc/sys/kernel/sched_autogroup_enabled", on, sizeof(on)) || strcmp(on, "0") == 0)
        return;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.pid <= 0)
        return; /* the daemon is in a PID namespace that is not visible here */
    if (!autogroup(report, getpid(), ours, sizeof(ours)) || !autogroup(report, peer.pid, its, sizeof(its)))
        return;
    if (strcmp(ours, its) == 0)
        doctor_report_add(report, "session", FINDING_OK, "",
                          "the daemon is in the same session as programs started here");
    else
        doctor_report_add(report, "session", FINDING_OK, "sysctl -w kernel.sched_autogroup_enabled=0",
                          "the daemon is in another session than programs started here. The kernel shares processors "
                          "between sessions first, so many ranks on few processors wait longer for the daemon");
}

/* Checks that a daemon answers. */
static void check_running(struct doctor_report *report, const struct target_options *w)
{
    char path[SOCKET_PATH_MAX];
    struct targets t;

    if (target_options_find(w, &t) != 0)
        return;
    for (unsigned i = 0; i < t.n; i++) {
        struct pm_list_rep rep;
        struct control_call call = {.op = PM_OP_LIST, .rep = &rep, .rep_len = sizeof(rep)};

        targets_socket(&t, i, path);
        int sock = control_open(path);
        int err = sock < 0 ? sock : control_call(sock, &call);
        if (sock < 0)
            report_no_daemon(report, w, path, sock);
        else if (call.why[0])
            doctor_report_add(report, "running", FINDING_FAIL, "for details: systemctl status pumiced (or with --user)",
                              "%s: %s", path, call.why);
        else if (err || rep.abi_version != PM_ABI_VERSION)
            doctor_report_add(report, "running", FINDING_FAIL,
                              "install the daemon, the library and the command from one release",
                              "the daemon at %s has another version than this command", path);
        else
            doctor_report_add(report, "running", FINDING_OK, "", "a daemon with %u device%s answers at %s", rep.num,
                              rep.num == 1 ? "" : "s", path);
        if (sock >= 0) {
            check_session(report, sock);
            close(sock);
        }
    }
}

static const char *const texts[] = {
    [FINDING_OK] = "ok", [FINDING_UNKNOWN] = "?", [FINDING_WARN] = "warn", [FINDING_FAIL] = "FAIL"};
static const char *const names[] = {
    [FINDING_OK] = "ok", [FINDING_UNKNOWN] = "unknown", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

static void print(const struct doctor_report *report, bool quiet)
{
    for (unsigned i = 0; i < report->n; i++) {
        const struct finding *f = &report->finding[i];

        if (quiet && f->verdict == FINDING_OK)
            continue;
        printf("%-4s  %-10s  %s\n", texts[f->verdict], f->check, f->text);
        if (f->fix[0])
            printf("                    %s %s\n", f->verdict == FINDING_OK ? "better:" : "fix:", f->fix);
    }
}

static void print_json(const struct doctor_report *report, bool healthy)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < report->n; i++) {
        const struct finding *f = &report->finding[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "check", f->check, "verdict", names[f->verdict],
                                              "text", f->text, "mend", f->fix));
    }
    json_t *root = json_pack("{s:b, s:o}", "healthy", healthy, "checks", list);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

int cmd_doctor(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "[FILE]", doc, target_options_child, NULL, NULL};
    static struct doctor_report report;
    struct doctor_options o = {.target = TARGET_OPTIONS_NONE, .sysroot = ""};
    bool healthy = true;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    report.sysroot = o.sysroot;
    check_installed(&report);
    check_symbols(&report, o.program);
    check_cm(&report);
    check_running(&report, &o.target);
    check_port(&report);
    check_buffers(&report);
    check_mtu(&report);
    check_firewall(&report);
    check_memory(&report);
    check_limits(&report);
    check_machine(&report);
    for (unsigned i = 0; i < report.n; i++)
        healthy &= report.finding[i].verdict < (o.strict ? FINDING_WARN : FINDING_FAIL);
    if (o.json)
        print_json(&report, healthy);
    else
        print(&report, o.quiet);
    if (!o.json)
        puts(healthy ? "Pumice works on this machine." : "Pumice does not work on this machine: see FAIL.");
    return !healthy;
}
