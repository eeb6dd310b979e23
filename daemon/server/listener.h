// SPDX-License-Identifier: BSD-2-Clause
/* The control socket: where it is, making it, and who may use it. */
#ifndef PUMICE_DAEMON_LISTENER_H
#define PUMICE_DAEMON_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "daemon/base/error_text.h"
#include "daemon/device/settings.h"

struct listener {
    int fd; /* -1: none */
    char path[108];
    dev_t dev; /* of the socket file, so that another daemon's is not removed */
    ino_t ino;
    bool inherited; /* a service manager made it: the file is not ours to change or remove */
    bool has_group;
    gid_t group; /* members may connect */
};

/* Takes the socket that a service manager passed, or makes and binds one, and its directory if it is one of the default
 * ones: $XDG_RUNTIME_DIR/pumice, /run/pumice, /tmp/pumice-UID, the first that can be made. A socket file that nobody
 * listens on is replaced. 0, or -errno with why saying what to do. */
int listener_open(struct listener *l, const struct settings *o, char why[ERROR_TEXT_MAX]);
/* False if another daemon has made a socket of its own at the same path since. */
bool listener_owns_path(const struct listener *l);
/* Closes it, and removes the file that listener_open made. */
void listener_close(struct listener *l);

/* May the process at the other end use the daemon: same user, root, or a member of the group. */
bool listener_admits(const struct listener *l, int sock, const struct ucred *cred);

#endif
