// SPDX-License-Identifier: BSD-2-Clause
/* SIGHUP: the daemon reads its configuration again while it runs, and applies the options that can change without a
 * restart. */
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

/* Copies the options marked OPTION_RELOAD from `fresh` to the settings of the server, and applies those that differ.
 * others: receives the names of all other options that differ, separated by ", "; empty: there are none. */
void reload_apply(struct server *sv, const struct settings *fresh, char others[ERROR_TEXT_MAX]);

#endif
