// SPDX-License-Identifier: BSD-2-Clause
/* The control socket: chooses its path, creates and removes it, and decides which users may connect. */
#ifndef PUMICE_DAEMON_SERVER_LISTENER_H
#define PUMICE_DAEMON_SERVER_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "daemon/base/error_text.h"
#include "daemon/device/settings.h"

struct listener {
    int fd; /* -1: none */
    char path[108];
    dev_t dev; /* of the socket file; protects another daemon's file from removal */
    ino_t ino;
    /* A service manager made the socket. The daemon must not change or remove the file. */
    bool inherited;
    bool has_group;
    gid_t group; /* its members may connect */
};

/* Takes the socket that a service manager passed, or makes and binds one. If the settings have no path, it uses the
 * first possible directory of $XDG_RUNTIME_DIR/pumice, /run/pumice, /tmp/pumice-UID, and makes it if needed. It
 * replaces a socket file at which no process listens. Returns 0, or -errno with advice in `why`. */
int listener_open(struct listener *l, const struct settings *s, char why[ERROR_TEXT_MAX]);
/* False if another daemon has since made its own socket at the same path. */
bool listener_owns_path(const struct listener *l);
/* Closes the socket, and removes the file if listener_open made it. */
void listener_close(struct listener *l);

/* May the process at the other end use the daemon? Yes for the same user, root, and members of the group. */
bool listener_admits(const struct listener *l, int sock, const struct ucred *cred);

#endif
