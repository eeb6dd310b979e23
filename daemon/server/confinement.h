// SPDX-License-Identifier: BSD-2-Clause
/* The sandbox (daemon/sandbox/sandbox.h) as the settings of the daemon ask for it. */
#ifndef PUMICE_DAEMON_SERVER_CONFINEMENT_H
#define PUMICE_DAEMON_SERVER_CONFINEMENT_H

#include <stdbool.h>

#include "daemon/device/settings.h"

/* Do the rules for files hold for the threads of the devices? Then the daemon can't use process_vm_readv. With a group,
 * strangers are among the clients. The daemon uses process_vm_readv only for programs of its own user, so the members
 * lose nothing. */
bool confinement_covers_devices(const struct settings *s);

/* sandbox_begin, unless the settings turn it off. socket: the path of the control socket, which must stay valid. The
 * sockets and the files beside the control socket must exist, so that nothing needs a right later. */
void confinement_begin(const struct settings *s, const char *socket);

#endif
