// SPDX-License-Identifier: BSD-2-Clause
/* pumiced: the command line, and what a process needs before it serves. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/config.h"
#include "daemon/net/address.h"
#include "daemon/options.h"
#include "daemon/reload.h"
#include "daemon/server/server.h"
#include "daemon/server/systemd.h"
#include "pumice/version.h"

const char *argp_program_version = "pumiced " PUMICE_VERSION;

static const char doc[] = "RDMA verbs in user space: the daemon of one host. It speaks RoCEv2 over UDP for programs "
                          "that are run with Pumice's "
                          "libibverbs. It stays in the foreground, needs no root, and runs without any option."
                          "\v"
                          "Without --device or --address there is one device, pumice0, on the first address that is "
                          "not the loopback's, or else on "
                          "127.0.0.1. Without --socket the control socket is $XDG_RUNTIME_DIR/pumice/pumiced.sock, "
                          "/run/pumice/pumiced.sock or "
                          "/tmp/pumice-UID/pumiced.sock, the first whose directory can be made; or, if a service "
                          "manager passes a socket (sd_listen_fds), that one.\n\n"
                          "SIGTERM and SIGINT end the daemon in order. Exit codes: 0 ended in order; 1 out of memory, "
                          "threads or files; 2 bad "
                          "command line or configuration; 3 a device's address is not ours or its UDP port 4791 is "
                          "taken; 4 the control socket "
                          "can't be made, or a living daemon has it.";

/* Keys of argp, one per setting; all above the letters. */
enum {
    KEY_FIRST = 256,
    KEY_CONFIG = KEY_FIRST,
    KEY_SOCKET,
    KEY_GROUP,
    KEY_DEVICE,
    KEY_ADDRESS,
    KEY_MTU,
    KEY_LOOPBACK,
    KEY_GSO,
    KEY_ECN,
    KEY_CNP_DSCP,
    KEY_TM_PROFILE,
    KEY_RCVBUF,
    KEY_WINDOW,
    KEY_ACK_DELAY,
    KEY_MIN_TIMEOUT,
    KEY_CONNECTIVITY,
    KEY_CONNECTIVITY_TRIES,
    KEY_CONNECTIVITY_MAP,
    KEY_IDLE,
    KEY_CPUS,
    KEY_MEMORY,
    KEY_FAULT,
    KEY_SEED,
    KEY_LOG_LEVEL,
    KEY_LOG_FORMAT,
    KEY_METRICS,
    KEY_READY_FD,
    KEY_END,
};

/* In the order of the keys. The long names are those of options_set. */
static const struct argp_option cli[] = {
    {"config", KEY_CONFIG, "FILE", 0, "Read settings from FILE; those on the command line win", 1},
    {"socket", KEY_SOCKET, "PATH", 0, "Control socket", 1},
    {"group", KEY_GROUP, "NAME", 0, "Let the members of a group use the daemon, too", 1},
    {"device", KEY_DEVICE, "NAME=ADDRESS", 0, "A device on an address of this host; up to 16", 2},
    {"address", KEY_ADDRESS, "ADDRESS", 0, "The same, named pumice0, pumice1, ...", 2},
    {"mtu", KEY_MTU, "auto|256|512|1024|2048|4096", 0, "Path MTU; auto: what fits the interface", 2},
    {"loopback", KEY_LOOPBACK, "engine|wire", 0,
     "Packets from a device to itself: handed over inside, or sent through the socket", 2},
    {"gso", KEY_GSO, "auto|on|off", 0,
     "Let the kernel cut batches into packets; auto: yes, but not while somebody captures", 2},
    {"ecn", KEY_ECN, "on|off", 0, "Packets can be marked by congested routers, and senders heed that", 2},
    {"cnp-dscp", KEY_CNP_DSCP, "N", 0,
     "DSCP of congestion notifications, 0 to 63; unless given, that of their queue pair", 3},
    {"tm-profile", KEY_TM_PROFILE, "generous|mlx5", 0, "How strict tag matching is; mlx5: as those adapters are", 3},
    {"rcvbuf", KEY_RCVBUF, "BYTES", 0, "Socket buffers to ask for (4194304)", 2},
    {"window", KEY_WINDOW, "PACKETS", 0, "Unacknowledged packets of a queue pair", 3},
    {"ack-delay-us", KEY_ACK_DELAY, "US", 0, "Longest delay of an ACK that was not asked for; 0: none", 3},
    {"min-timeout-us", KEY_MIN_TIMEOUT, "US", 0,
     "Shortest timeout of a queue pair, whatever its program asks for (1000)", 3},
    {"connectivity", KEY_CONNECTIVITY, "off|warn|enforce", 0,
     "Check by probes whether packets get to an address before its first use, and log it or refuse the address if not",
     4},
    {"connectivity-tries", KEY_CONNECTIVITY_TRIES, "N", 0, "Give up after N probes, 250 ms apart (40)", 4},
    {"connectivity-map", KEY_CONNECTIVITY_MAP, "FILE", 0, "Append to FILE who pairs with whom, and how well", 4},
    {"idle-us", KEY_IDLE, "US", 0, "How long to look for work before sleeping (100)", 3},
    {"cpus", KEY_CPUS, "any|N[,N...]", 0, "Processors that the devices' threads keep to (any)", 3},
    {"memory", KEY_MEMORY, "auto|process_vm|proc_mem", 0, "How to reach the memory of programs", 3},
    {"fault", KEY_FAULT, "SPEC", 0, "Faults for the packets sent, as loss=1%,dup=2%", 4},
    {"seed", KEY_SEED, "NUMBER", 0, "Seed of the faults and of the QP numbers", 4},
    {"log-level", KEY_LOG_LEVEL, "error|warn|info|debug[,AREA=LEVEL...]", 0,
     "What goes to standard error (warn); an area: daemon, net, session, qp, packet", 5},
    {"log-format", KEY_LOG_FORMAT, "text|json", 0, "One line of text for each message, or one JSON object", 5},
    {"metrics", KEY_METRICS, "[ADDRESS:]PORT", 0, "Serve counters for Prometheus by HTTP, on the loopback only", 5},
    {"ready-fd", KEY_READY_FD, "FD", 0, "Write the line \"ready\" to this descriptor when everything listens", 5},
    {"foreground", 'f', NULL, 0, "Stay in the foreground, as always", 5},
    {0},
};

struct parsed {
    struct settings *settings; /* NULL: the first look, for --config only */
    const char *config;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct parsed *p = state->input;
    char why[ERROR_TEXT_MAX];

    if (key == ARGP_KEY_ARG)
        argp_error(state, "\"%s\": pumiced takes options only", arg);
    if (key == KEY_CONFIG) {
        p->config = arg;
    } else if (key > KEY_FIRST && key < KEY_END) {
        if (!p->settings)
            return 0;
        if ((key == KEY_DEVICE || key == KEY_ADDRESS) && p->settings->devices_from_file) {
            p->settings->devices = 0;
            p->settings->devices_from_file = false;
        }
        if (options_set(p->settings, cli[key - KEY_FIRST].name, arg, why) != 0)
            argp_error(state, "--%s", why);
    } else if (key != 'f' && key != ARGP_KEY_ARG) {
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp parser = {.options = cli, .parser = parse, .doc = doc};

static struct {
    int argc;
    char **argv;
    bool has_file; /* it names a configuration file */
} command_line;

/* 0, or what config_load says. Does not come back if the command line is wrong. */
static int read_options(struct settings *o, char why[ERROR_TEXT_MAX])
{
    struct parsed p = {NULL, NULL};
    int rc = 0;

    argp_err_exit_status = EXIT_BAD_CONFIG;
    settings_init(o);
    argp_parse(&parser, command_line.argc, command_line.argv, 0, NULL, &p);
    command_line.has_file = p.config != NULL;
    if (p.config)
        rc = config_load(o, p.config, why);
    if (rc)
        return rc;
    p.settings = o;
    argp_parse(&parser, command_line.argc, command_line.argv, 0, NULL, &p);
    settings_finish(o);
    return 0;
}

/* Each session has some descriptors, and each completion channel; the hard limit is what the user was allowed. */
static void raise_file_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* Why the daemon can't start; NULL: it could. Until it is known to be something else, the command line is at fault, for which
 * argp ends the process itself. */
static const char *trouble = "its command line is wrong; its log says how";

static void refuse_clients(void)
{
    if (trouble)
        systemd_refuse(trouble);
    trouble = NULL;
}

static void say_ready(const struct settings *o)
{
    static const char line[] = "ready\n";
    char state[2048] = "READY=1\nSTATUS=Serving", address[ADDR_TEXT_MAX];
    int rc;

    for (unsigned i = 0; i < o->devices; i++) {
        size_t len = strlen(state);

        addr_text(&o->device[i].addr, address);
        snprintf(state + len, sizeof(state) - len, "%s %s on %s", i ? "," : "", o->device[i].name, address);
    }
    rc = systemd_notify(state);
    if (rc)
        log_warn("the service manager can't be told: %s", strerror(-rc));
    if (o->ready_fd < 0)
        return;
    if (write(o->ready_fd, line, sizeof(line) - 1) < 0)
        log_write(LOG_AREA, LOG_LEVEL_WARN, "--ready-fd %d: %s", o->ready_fd, strerror(errno));
    close(o->ready_fd);
}

int main(int argc, char **argv)
{
    static struct settings settings;
    static struct server server;
    static struct reload reload;
    char why[ERROR_TEXT_MAX];
    int rc;

    command_line.argc = argc;
    command_line.argv = argv;
    atexit(refuse_clients);
    if (read_options(&settings, why) != 0) {
        log_error("%s", why);
        trouble = why;
        refuse_clients();
        return EXIT_BAD_CONFIG;
    }
    log_set_levels(&settings.log_levels);
    log_set_json(settings.log_json);
    signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    rc = server_init(&server, &settings, why);
    trouble = rc ? why : NULL;
    if (rc) {
        log_error("%s", why);
        refuse_clients(); /* while the socket is open */
    } else {
        /* Without a configuration file and a service manager, SIGHUP ends the daemon, as it ends any program whose
         * terminal goes away. */
        if (command_line.has_file || getenv("NOTIFY_SOCKET"))
            reload_watch(&reload, &server, command_line.has_file ? read_options : NULL);
        say_ready(&settings);
        server_run(&server);
        systemd_notify("STOPPING=1");
    }
    server_fini(&server);
    return rc;
}
