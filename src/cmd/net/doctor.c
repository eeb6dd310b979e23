// SPDX-License-Identifier: BSD-2-Clause
/* pumice doctor: what on this machine would stop Pumice, and what to do about it. */
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
#include "src/cmd/net/check_network.h"
#include "src/cmd/net/check_system.h"

struct doctor_options {
    struct target_options target;
    bool json, quiet, strict;
    const char *sysroot;
};
enum { KEY_SYSROOT = 256, KEY_STRICT };

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "JSON in place of text", 0},
    {"quiet", 'q', NULL, 0, "Only what is not fine", 0},
    {"strict", KEY_STRICT, NULL, 0, "Warnings count as failures in the exit code", 0},
    {"sysroot", KEY_SYSROOT, "DIR", OPTION_HIDDEN, "Read /proc, /sys and /dev/shm below DIR, for tests", 0},
    {0},
};

static const char doc[] =
    "Looks for everything on this machine that has stopped anybody from using Pumice, and says for "
    "each what mends it. Needs no root and no daemon; changes nothing.\v"
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
        argp_error(state, "'%s' is too much: pumice doctor takes no arguments", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* That there is no daemon is no illness. */
static void nobody(struct doctor_report *report, const struct target_options *w, const char *path, int err)
{
    char users[256];

    if (err == -EACCES) {
        control_users(path, users, sizeof(users));
        doctor_report_add(report, "running", FINDING_WARN, "pumice run brings a daemon of its own", "%s: %s", path,
                          users);
    } else if (w->socket) {
        doctor_report_add(report, "running", FINDING_FAIL, "pumiced --socket PATH", "no daemon answers at %s", path);
    } else {
        doctor_report_add(report, "running", FINDING_OK, "", "no daemon runs now (pumice run brings its own)");
    }
}

/* The group of a process among which the kernel shares processors first, "/autogroup-N"; false: it is in none, or this
 * kernel has no such groups. Not the session's number: that of a leader outside of our PID namespace is 0. */
static bool autogroup(const struct doctor_report *report, pid_t pid, char *group, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/autogroup", (int)pid);
    if (!doctor_report_read(report, path, group, size))
        return false;
    group[strcspn(group, " ")] = 0;
    return true;
}

/* The kernel shares processors between sessions first, and a daemon that answers fast needs to take turns with its
 * programs (docs/mpi.md). With socket activation the peer is the service manager, which is in another session as well.
 * */
static void session(struct doctor_report *report, int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    char on[16], ours[64], its[64];

    if (!doctor_report_read(report, "/proc/sys/kernel/sched_autogroup_enabled", on, sizeof(on)) || strcmp(on, "0") == 0)
        return;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.pid <= 0)
        return; /* it is in a PID namespace that we don't see */
    if (!autogroup(report, getpid(), ours, sizeof(ours)) || !autogroup(report, peer.pid, its, sizeof(its)))
        return;
    if (strcmp(ours, its) == 0)
        doctor_report_add(report, "session", FINDING_OK, "",
                          "the daemon takes turns on the processors with programs of this session");
    else
        doctor_report_add(
            report, "session", FINDING_OK, "sysctl -w kernel.sched_autogroup_enabled=0",
            "the daemon is in another session than programs started here, and the kernel shares processors "
            "between sessions first: many ranks on few processors wait longer for it");
}

/* Is there a daemon that answers? */
static void running(struct doctor_report *report, const struct target_options *w)
{
    char path[SOCKET_PATH_MAX];
    struct targets t;

    if (target_options_find(w, &t) != 0)
        return;
    for (unsigned i = 0; i < t.n; i++) {
        struct pm_list_rep rep;
        struct control_call call = {.op = PM_OP_LIST, .rep = &rep, .rep_len = sizeof(rep)};
        int sock, err;

        targets_socket(&t, i, path);
        sock = control_open(path);
        err = sock < 0 ? sock : control_call(sock, &call);
        if (sock < 0)
            nobody(report, w, path, sock);
        else if (call.why[0])
            doctor_report_add(report, "running", FINDING_FAIL, "systemctl status pumiced, or with --user, says more",
                              "%s: %s", path, call.why);
        else if (err || rep.abi_version != PM_ABI_VERSION)
            doctor_report_add(report, "running", FINDING_FAIL, "use daemon, library and command of one release",
                              "the daemon at %s does not understand this command", path);
        else
            doctor_report_add(report, "running", FINDING_OK, "", "a daemon with %u device%s answers at %s", rep.num,
                              rep.num == 1 ? "" : "s", path);
        if (sock >= 0) {
            session(report, sock);
            close(sock);
        }
    }
}

static const char *const words[] = {
    [FINDING_OK] = "ok", [FINDING_UNKNOWN] = "?", [FINDING_WARN] = "warn", [FINDING_FAIL] = "FAIL"};
static const char *const names[] = {
    [FINDING_OK] = "ok", [FINDING_UNKNOWN] = "unknown", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

static void show(const struct doctor_report *report, bool quiet)
{
    for (unsigned i = 0; i < report->n; i++) {
        const struct finding *f = &report->finding[i];

        if (quiet && f->verdict == FINDING_OK)
            continue;
        printf("%-4s  %-10s  %s\n", words[f->verdict], f->check, f->text);
        if (f->fix[0])
            printf("                    %s %s\n", f->verdict == FINDING_OK ? "better:" : "mend:", f->fix);
    }
}

static void print_json(const struct doctor_report *report, bool healthy)
{
    json_t *list = json_array(), *root;

    for (unsigned i = 0; i < report->n; i++) {
        const struct finding *f = &report->finding[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "check", f->check, "verdict", names[f->verdict],
                                              "text", f->text, "mend", f->fix));
    }
    root = json_pack("{s:b, s:o}", "healthy", healthy, "checks", list);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

int cmd_doctor(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, target_options_child, NULL, NULL};
    static struct doctor_report report;
    struct doctor_options o = {.target = TARGET_OPTIONS_NONE, .sysroot = ""};
    bool healthy = true;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    report.sysroot = o.sysroot;
    check_installed(&report);
    running(&report, &o.target);
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
        show(&report, o.quiet);
    if (!o.json)
        puts(healthy ? "Pumice works here." : "Something is in the way of Pumice here: see FAIL.");
    return !healthy;
}
