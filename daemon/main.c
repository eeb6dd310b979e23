// SPDX-License-Identifier: BSD-2-Clause
/* pumiced: reads its settings, starts the server, and reports to the service manager or the program that started it. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/command_line.h"
#include "daemon/config.h"
#include "daemon/environment.h"
#include "daemon/net/address.h"
#include "daemon/reload.h"
#include "daemon/server/server.h"
#include "daemon/server/systemd.h"
#include "daemon/session/segment_guard.h"

static struct {
    int argc;
    char **argv;
    bool has_file; /* there is a configuration file */
} command_line;

/* Reads the configuration file, the environment and the command line. The later ones win. 0 or -errno with why. Does not
 * return if the command line is wrong. */
static int read_settings(struct settings *s, char why[ERROR_TEXT_MAX])
{
    const char *file = command_line_read(command_line.argc, command_line.argv, NULL);
    int rc = 0;

    settings_init(s);
    if (!file)
        file = environment_value("config");
    command_line.has_file = file != NULL;
    if (file)
        rc = config_load(s, file, why);
    if (!rc)
        rc = environment_read(s, why);
    if (rc)
        return rc;
    command_line_read(command_line.argc, command_line.argv, s);
    snprintf(s->config_file, sizeof(s->config_file), "%s", file ? file : "");
    settings_finish(s);
    return 0;
}

/* Sessions and completion channels need descriptors. This raises the soft limit to the hard one, which needs no
 * right. */
static void raise_file_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* The reason why the daemon can't start; NULL: it has started. At first it is the command line, because argp ends the
 * process itself if that is wrong. */
static const char *trouble = "its command line is wrong; see its log";

/* Tells the reason to clients that wait at a socket of the service manager. Runs at exit, too. */
static void refuse_clients(void)
{
    if (trouble)
        systemd_refuse(trouble);
    trouble = NULL;
}

/* Reports that the daemon accepts connections. */
static void report_ready(const struct settings *s)
{
    static const char line[] = "ready\n";
    char state[2048] = "READY=1\nSTATUS=Serving", address[ADDR_TEXT_MAX];
    int rc;

    for (unsigned i = 0; i < s->devices; i++) {
        size_t len = strlen(state);

        addr_text(&s->device[i].addr[0], address);
        snprintf(state + len, sizeof(state) - len, "%s %s on %s", i ? "," : "", s->device[i].name, address);
    }
    rc = sd_notify(0, state); /* 0 without a service manager */
    if (rc < 0)
        log_warn("can't notify the service manager ($NOTIFY_SOCKET): %s", strerror(-rc));
    if (s->ready_fd < 0)
        return;
    if (write(s->ready_fd, line, sizeof(line) - 1) < 0)
        log_write(LOG_AREA, LOG_LEVEL_WARN, "--ready-fd %d: %s", s->ready_fd, strerror(errno));
    close(s->ready_fd);
}

/* The main thread, and those of the log, of files, of connection management, of the status, and the watchdog. */
#define LASTING_THREADS 6

/* Sets malloc up.
 *
 * It has no fast bins: malloc collects small chunks there, and merges all of them at once when a large one is free. At the
 * end of a session with 16,384 queue pairs, that took 3 ms of the device's thread.
 *
 * It has an arena for each thread that lasts. By default each helper thread has one, too, and glibc keeps as many arenas as
 * threads have ever run at once. With fewer arenas, a device's thread shares one with others, and the daemon
 * needs more memory: ten jobs of eight ranks made the daemon grow by up to 540 KiB instead of 280. */
static void set_up_malloc(unsigned devices)
{
    mallopt(M_MXFAST, 0);
    mallopt(M_ARENA_MAX, LASTING_THREADS + (int)devices);
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
    if (read_settings(&settings, why) != 0) {
        log_error("%s", why);
        trouble = why;
        refuse_clients();
        return EXIT_BAD_CONFIG;
    }
    log_set_levels(&settings.log_levels);
    log_set_json(settings.log_json);
    signal(SIGPIPE, SIG_IGN);
    set_up_malloc(settings.devices);
    segment_guard_install();
    raise_file_limit();
    rc = server_init(&server, &settings, why);
    trouble = rc ? why : NULL;
    if (rc) {
        log_error("%s", why);
        refuse_clients(); /* now, because server_fini closes the socket */
    } else {
        /* Without a configuration file and a service manager, SIGHUP ends the daemon, as it ends any program whose
         * terminal goes away. */
        if (command_line.has_file || getenv("NOTIFY_SOCKET"))
            reload_watch(&reload, &server, command_line.has_file ? read_settings : NULL);
        report_ready(&settings);
        server_run(&server);
        sd_notify(0, "STOPPING=1");
    }
    server_fini(&server);
    log_stop();
    return rc;
}
