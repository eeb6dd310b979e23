// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/sanitizer.h"

/* linux/landlock.h of the build may be older than the kernel. So this is what newer ones define. */
#define FS_TRUNCATE (1ull << 14) /* version 3 */
#define FS_IOCTL_DEV (1ull << 15) /* version 5 */
#define NET_BIND_TCP (1ull << 0) /* version 4 */
#define NET_CONNECT_TCP (1ull << 1)
#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* version 6 */
struct ruleset {
    uint64_t fs, net, scoped;
};

#define FS_FIRST ((1ull << 13) - 1) /* all of version 1 */
#define FS_REFER LANDLOCK_ACCESS_FS_REFER /* version 2 */
#define FS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_REMOVE (LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR)
#define FS_WRITE                                                                                                       \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | FS_REFER | FS_TRUNCATE)

int landlock_abi(void)
{
    long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return v > 0 ? (int)v : 0;
}

static struct ruleset handled(int abi, bool abstract_sockets)
{
    struct ruleset r = {.fs = FS_FIRST | FS_REFER};

    if (abi >= 3)
        r.fs |= FS_TRUNCATE;
    if (abi >= 4)
        r.net = NET_BIND_TCP | NET_CONNECT_TCP;
    if (abi >= 5)
        r.fs |= FS_IOCTL_DEV;
    if (abi >= 6 && !abstract_sockets)
        r.scoped = SCOPE_ABSTRACT_UNIX;
    return r;
}

/* Allows something below a directory, or of a file. A path that does not exist needs no rule. */
static int allow(int ruleset, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    int rc = 0;

    if (!path || !path[0])
        return 0;
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
        rc = -errno;
    close(rule.parent_fd);
    return rc;
}

/* The same for the directory of a file: an editor replaces the file itself. */
static int allow_beside(int ruleset, const char *path, uint64_t access)
{
    char dir[PATH_MAX];

    if (!path || !path[0])
        return 0;
    if ((size_t)snprintf(dir, sizeof(dir), "%s", path) >= sizeof(dir))
        return -ENAMETOOLONG;
    char *slash = strrchr(dir, '/');
    if (!slash)
        return allow(ruleset, ".", access);
    slash[slash == dir] = 0;
    return allow(ruleset, dir, access);
}

static int allow_all(int ruleset, const struct landlock_paths *p, uint64_t fs)
{
    int rc = allow(ruleset, SANITIZED ? "/" : "/proc", FS_READ);

    if (rc == 0)
        rc = allow_beside(ruleset, p->config, LANDLOCK_ACCESS_FS_READ_FILE);
    if (rc == 0)
        rc = allow_beside(ruleset, p->socket, FS_REMOVE);
    if (rc == 0)
        rc = allow(ruleset, p->tree, (FS_READ | FS_REMOVE | FS_WRITE) & fs);
    return rc ? rc : allow(ruleset, p->append, LANDLOCK_ACCESS_FS_WRITE_FILE);
}

int landlock_enter(const struct landlock_paths *p)
{
    int abi = landlock_abi();
    struct ruleset r = handled(abi, p->abstract_sockets);

    if (abi < LANDLOCK_ABI_NEEDED)
        return -EOPNOTSUPP;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &r, sizeof(r), 0);
    if (fd < 0)
        return -errno;
    int rc = allow_all(fd, p, r.fs);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, fd, 0) != 0)
        rc = -errno;
    close(fd);
    return rc;
}
