// SPDX-License-Identifier: BSD-2-Clause
/* SIGHUP: the configuration is read again while the daemon runs, and what can change without a restart does. */
#ifndef PUMICE_DAEMON_RELOAD_H
#define PUMICE_DAEMON_RELOAD_H

#include "daemon/server/server.h"

/* Heeds SIGHUP from now on. */
void reload_watch(struct server *sv);

#endif
