// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/listener.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/server/systemd.h"

/* --- path of the socket ------------------------------------------------------------------------ */

/* Makes a directory if it does not exist. False if it belongs to another user or others may write to it. */
static bool own_directory(const char *path, bool group)
{
    struct stat st;

    if (mkdir(path, group ? 0755 : 0700) != 0 && errno != EEXIST)
        return false;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return false;
    return access(path, W_OK | X_OK) == 0;
}

static bool default_path(char *out, size_t size, bool group)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    char dir[3][96];

    dir[0][0] = 0;
    if (run && run[0] == '/' && strlen(run) < sizeof(dir[0]) - sizeof("/pumice"))
        snprintf(dir[0], sizeof(dir[0]), "%s/pumice", run);
    snprintf(dir[1], sizeof(dir[1]), "/run/pumice");
    snprintf(dir[2], sizeof(dir[2]), "/tmp/pumice-%u", (unsigned)geteuid());
    for (unsigned i = 0; i < 3; i++) {
        if (dir[i][0] && own_directory(dir[i], group) &&
            (size_t)snprintf(out, size, "%s/" PM_SOCKET_NAME, dir[i]) < size)
            return true;
    }
    return false;
}

/* --- opening and closing ----------------------------------------------------------------------- */

static int fail(char *why, int rc, const char *what, const char *path, const char *advice)
{
    snprintf(why, ERROR_TEXT_MAX, "%s %s: %s%s", what, path, strerror(-rc), advice);
    return rc;
}

/* Does a process listen there? */
static bool is_alive(const struct sockaddr_un *sa)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return false;
    /* EAGAIN: its backlog is full. EPROTOTYPE: a socket of another type, which we must not remove. */
    bool alive = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN || errno == EPROTOTYPE;
    close(fd);
    return alive;
}

static int bind_path(struct listener *l, const struct sockaddr_un *sa, char *why)
{
    mode_t old = umask(0177); /* no access before the mode is set */
    struct stat st;

    int rc = bind(l->fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ? 0 : -errno;
    if (rc == -EADDRINUSE) {
        if (lstat(l->path, &st) != 0 || !S_ISSOCK(st.st_mode)) {
            umask(old);
            return fail(why, rc, "control socket", l->path,
                        ": the file exists and is not a socket; remove it, or use --socket");
        }
        if (is_alive(sa)) {
            umask(old);
            return fail(why, rc, "control socket", l->path,
                        ": another pumiced listens there; stop it, or use --socket");
        }
        log_info("replacing %s, the socket of a daemon that no longer runs", l->path);
        unlink(l->path);
        rc = bind(l->fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ? 0 : -errno;
    }
    umask(old);
    if (rc)
        return fail(why, rc, "cannot create the control socket", l->path,
                    rc == -ENOENT || rc == -EACCES || rc == -EROFS
                        ? ": check that its directory exists and is writable, or use --socket PATH"
                        : "");
    return 0;
}

static int set_access(struct listener *l, const struct settings *s, char *why)
{
    struct stat st;

    if (stat(l->path, &st) == 0) {
        l->dev = st.st_dev;
        l->ino = st.st_ino;
    }
    if (!s->group[0])
        return 0; /* the umask gave it mode 0600 */
    if (chown(l->path, (uid_t)-1, l->group) != 0 || chmod(l->path, 0660) != 0)
        return fail(why, -errno, "cannot give the control socket to group", s->group,
                    ": only root and members of the group may");
    return 0;
}

static int find_group(struct listener *l, const struct settings *s, char *why)
{
    if (!s->group[0])
        return 0;
    errno = 0;
    const struct group *g = getgrnam(s->group);
    if (!g) {
        snprintf(why, ERROR_TEXT_MAX, "unknown group \"%s\"", s->group);
        return -EINVAL;
    }
    l->group = g->gr_gid;
    l->has_group = true;
    return 0;
}

/* -ENOENT: there is no inherited socket. */
static int take_inherited(struct listener *l, const struct settings *s, char *why)
{
    struct stat st;
    int fd = systemd_socket(l->path, why);

    if (fd < 0)
        return fd;
    if (s->socket[0] && strcmp(s->socket, l->path) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "the service manager passed the socket %s, but the setting is socket = %s",
                 l->path, s->socket);
        return -EINVAL; /* it stays open for systemd_refuse */
    }
    if (stat(l->path, &st) == 0) {
        l->dev = st.st_dev;
        l->ino = st.st_ino;
    }
    l->inherited = true;
    l->fd = fd;
    return 0;
}

int listener_open(struct listener *l, const struct settings *s, char why[ERROR_TEXT_MAX])
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    memset(l, 0, sizeof(*l));
    l->fd = -1;
    int rc = find_group(l, s, why);
    if (rc)
        return rc;
    rc = take_inherited(l, s, why);
    if (rc != -ENOENT)
        return rc;
    if (s->socket[0]) {
        snprintf(l->path, sizeof(l->path), "%s", s->socket);
    } else if (!default_path(l->path, sizeof(l->path), l->has_group)) {
        snprintf(why, ERROR_TEXT_MAX,
                 "no directory for the control socket: $XDG_RUNTIME_DIR/pumice, /run/pumice and /tmp/pumice-%u are not "
                 "writable or belong to another user; use --socket PATH",
                 (unsigned)geteuid());
        return -EACCES;
    }
    memcpy(sa.sun_path, l->path, sizeof(sa.sun_path));
    l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return fail(why, -errno, "cannot create the control socket", l->path, "");
    rc = bind_path(l, &sa, why);
    if (rc == 0) {
        rc = set_access(l, s, why);
        if (rc == 0 && listen(l->fd, 128) != 0)
            rc = fail(why, -errno, "cannot listen at", l->path, "");
        if (rc)
            unlink(l->path);
    }
    if (rc) {
        close(l->fd);
        l->fd = -1;
    }
    return rc;
}

bool listener_owns_path(const struct listener *l)
{
    struct stat st;

    return l->fd >= 0 && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

void listener_close(struct listener *l)
{
    if (l->fd < 0)
        return;
    if (!l->inherited && listener_owns_path(l))
        unlink(l->path);
    close(l->fd);
    l->fd = -1;
}

/* --- access ------------------------------------------------------------------------------------ */

static bool in_groups(int sock, gid_t group)
{
    gid_t list[NGROUPS_MAX > 1024 ? 1024 : NGROUPS_MAX];
    socklen_t len = sizeof(list);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, list, &len) != 0)
        return false;
    for (unsigned i = 0; i < len / sizeof(list[0]); i++) {
        if (list[i] == group)
            return true;
    }
    return false;
}

bool listener_admits(const struct listener *l, int sock, const struct ucred *cred)
{
    if (cred->uid == geteuid() || cred->uid == 0)
        return true;
    return l->has_group && (cred->gid == l->group || in_groups(sock, l->group));
}
