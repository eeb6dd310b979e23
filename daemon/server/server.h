// SPDX-License-Identifier: BSD-2-Clause
/* The main thread: accepts connections, answers requests that do not need a session, and hands a connection to its
 * device's thread at PM_OP_OPEN. */
#ifndef PUMICE_DAEMON_SERVER_SERVER_H
#define PUMICE_DAEMON_SERVER_SERVER_H

#include <ev.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/activity.h"
#include "daemon/base/quota.h"
#include "daemon/cm/cm_thread.h"
#include "daemon/device/control_turns.h"
#include "daemon/server/device_set.h"
#include "daemon/server/idle_exit.h"
#include "daemon/server/listener.h"
#include "daemon/server/query.h"
#include "daemon/server/status_thread.h"
#include "daemon/server/watchdog.h"
#include "daemon/threads/loop_activity.h"

/* Exit codes of pumiced. */
enum exit_code {
    EXIT_DONE = 0, /* orderly end, by a signal or by PM_OP_SHUTDOWN */
    EXIT_TROUBLE = 1, /* no memory, threads or files */
    EXIT_BAD_CONFIG = 2, /* error in the command line or the configuration file */
    /* A device's address is not an address of this host, or its port 4791 is in use. */
    EXIT_ADDRESS = 3,
    /* The control socket can't be created, or another daemon is using it. */
    EXIT_SOCKET = 4,
};

struct metrics;
struct connection; /* a connection that is not bound to a device */
TAILQ_HEAD(connection_list, connection);

struct server {
    struct activity activity; /* of the main thread */
    struct settings *settings;
    struct ev_loop *loop;
    struct listener listener;
    struct device_set devices;
    struct connection_list connections;
    struct connection_list refused; /* beyond the quota of their user */
    unsigned num_refused;
    struct quota quota;
    struct control_turns turns; /* of the connections */
    unsigned num_connections;
    struct metrics *metrics; /* NULL: not served */
    uint64_t started; /* clock_ns at the start */
    ev_io acceptable;
    ev_timer accept_again; /* runs while there are too many open files */
    ev_signal sigterm, sigint;
    struct loop_activity loop_activity; /* of `loop` */
    struct idle_exit idle_exit;
    struct watchdog watchdog;
    struct status_thread status;
    struct cm_thread cm;
    struct query_sources sources; /* of the status thread and of metrics */
};

/* Opens the devices and the control socket, and starts the threads. Returns 0, or an enum exit_code with advice in
 * `why`. Call server_fini also after an error. */
int server_init(struct server *sv, struct settings *s, char why[ERROR_TEXT_MAX]);
/* Serves until a signal or PM_OP_SHUTDOWN. */
void server_run(struct server *sv);
/* Ends the threads, all sessions and all connections. If this takes longer than WATCHDOG_END_S seconds, for example
 * because a device's thread is stuck, the watchdog ends the process. */
void server_fini(struct server *sv);

#endif
