// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/targets.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"

const char *targets_env_lab(unsigned *hosts)
{
    const char *lab = getenv(PM_ENV_LAB), *num = getenv(PM_ENV_HOSTS);

    if (!lab || !lab[0])
        return NULL;
    long n = num ? parse_number(num, 1, HOSTS_MAX) : -1;
    if (n < 0) {
        say("%s is set, but %s is %s%s%s; did a program change it within pumice run?", PM_ENV_LAB, PM_ENV_HOSTS,
            num ? "'" : "", num ? num : "not", num ? "'" : "");
        return NULL;
    }
    *hosts = (unsigned)n;
    return lab;
}

int targets_lab_socket(const char *dir, unsigned host, char *out)
{
    int n = snprintf(out, SOCKET_PATH_MAX, "%s/host%u.sock", dir, host);

    return n < SOCKET_PATH_MAX ? 0 : -1;
}

static int use_path(struct targets *t, const char *path)
{
    *t = (struct targets){.n = 1, .first = -1};
    if (strlen(path) >= sizeof(t->socket)) {
        say("the path of the control socket is too long: %s (at most %zu characters)", path, sizeof(t->socket) - 1);
        return -1;
    }
    strcpy(t->socket, path);
    return 0;
}

/* True if the socket exists in a directory that belongs to this user or root. Any other user can make a directory of
 * this name in /tmp. */
static bool trustworthy(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;

    snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = 0;
    return access(path, F_OK) == 0 && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
           (st.st_uid == getuid() || st.st_uid == 0);
}

static int use_default(struct targets *t)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *path = getenv(PM_ENV_SOCKET);
    char own[PATH_MAX];

    if (path && path[0])
        return use_path(t, path);
    if (runtime && runtime[0] == '/') {
        snprintf(own, sizeof(own), "%s/pumice/" PM_SOCKET_NAME, runtime);
        if (trustworthy(own))
            return use_path(t, own);
    }
    snprintf(own, sizeof(own), "/tmp/pumice-%u/" PM_SOCKET_NAME, (unsigned)getuid());
    if (access("/run/pumice/" PM_SOCKET_NAME, F_OK) != 0 && trustworthy(own))
        return use_path(t, own);
    return use_path(t, "/run/pumice/" PM_SOCKET_NAME);
}

int targets_find(struct targets *t, const char *socket, int host)
{
    unsigned hosts = 0;

    if (socket)
        return use_path(t, socket);
    const char *lab = targets_env_lab(&hosts);
    if (!lab && getenv(PM_ENV_LAB))
        return -1;
    if (!lab && host >= 0) {
        say("--host works only within pumice run --hosts N");
        return -1;
    }
    if (!lab)
        return use_default(t);
    if (host >= (int)hosts) {
        say("there is no host %d: the hosts of this lab are 0 to %u", host, hosts - 1);
        return -1;
    }
    *t = (struct targets){.n = host < 0 ? hosts : 1, .first = host < 0 ? 0 : host, .lab = lab};
    return 0;
}

void targets_socket(const struct targets *t, unsigned i, char *out)
{
    if (t->lab)
        targets_lab_socket(t->lab, (unsigned)t->first + i, out);
    else
        strcpy(out, t->socket);
}
