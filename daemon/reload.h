// SPDX-License-Identifier: BSD-2-Clause
/* SIGHUP: the daemon reads its configuration again while it runs, and applies what can change without a restart. */
#ifndef PUMICE_DAEMON_RELOAD_H
#define PUMICE_DAEMON_RELOAD_H

#include <ev.h>

#include "daemon/server/server.h"

struct reload {
    struct server *server;
    /* Reads command line and configuration file again. 0, or -errno with why. NULL: there is no configuration file. */
    int (*read)(struct settings *fresh, char why[ERROR_TEXT_MAX]);
    ev_signal sighup;
};

/* Handles SIGHUP from now on. To be called once, after server_init; *r must outlive the server. */
void reload_watch(struct reload *r, struct server *sv, int (*read)(struct settings *fresh, char why[ERROR_TEXT_MAX]));

#endif
