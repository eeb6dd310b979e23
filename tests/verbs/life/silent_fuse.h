// SPDX-License-Identifier: BSD-2-Clause
/* A file system in user space (FUSE) with files that can be mapped, whose server never answers a read. It speaks the
 * kernel's protocol, so it needs no library. It needs root, and a mount namespace of the process. */
#ifndef PUMICE_TESTS_VERBS_LIFE_SILENT_FUSE_H
#define PUMICE_TESTS_VERBS_LIFE_SILENT_FUSE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct silent_fuse {
    pid_t server;
    char dir[32]; /* each number in it, from 2, is a file of 16 MiB */
};

static inline void silent_fuse_reply(int fd, const struct fuse_in_header *h, int err, const void *body, size_t len)
{
    struct {
        struct fuse_out_header head;
        char body[256];
    } out = {.head = {.len = (uint32_t)(sizeof(out.head) + len), .error = err, .unique = h->unique}};

    if (len)
        memcpy(out.body, body, len);
    if (write(fd, &out, out.head.len) < 0) {
        /* The kernel has withdrawn the request. */
    }
}

static inline struct fuse_attr silent_fuse_attr(uint64_t node)
{
    return (struct fuse_attr){.ino = node,
                              .size = node == 1 ? 0 : 16u << 20,
                              .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0666,
                              .nlink = 1,
                              .blksize = 4096};
}

static inline void silent_fuse_serve(int fd)
{
    static char in[1 << 20];
    const struct fuse_in_header *h = (const void *)in;
    const struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 65536};
    const struct fuse_open_out open_out = {0};

    for (;;) {
        ssize_t n = read(fd, in, sizeof(in));
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            exit(0);
        if (n < 0)
            continue;
        uint64_t node = h->opcode == FUSE_LOOKUP ? strtoul(in + sizeof(*h), NULL, 10) : 0;
        struct fuse_entry_out entry = {
            .nodeid = node, .entry_valid = 1000, .attr_valid = 1000, .attr = silent_fuse_attr(node)};
        struct fuse_attr_out attr = {.attr_valid = 1000, .attr = silent_fuse_attr(h->nodeid)};
        switch (h->opcode) {
        case FUSE_INIT:
            silent_fuse_reply(fd, h, 0, &init, sizeof(init));
            break;
        case FUSE_LOOKUP:
            silent_fuse_reply(fd, h, node < 2 ? -ENOENT : 0, &entry, sizeof(entry));
            break;
        case FUSE_GETATTR:
            silent_fuse_reply(fd, h, 0, &attr, sizeof(attr));
            break;
        case FUSE_OPEN:
            silent_fuse_reply(fd, h, 0, &open_out, sizeof(open_out));
            break;
        case FUSE_READ: /* silence */
        case FUSE_FORGET:
        case FUSE_INTERRUPT:
            break;
        default:
            silent_fuse_reply(fd, h, -ENOSYS, NULL, 0);
        }
    }
}

/* Mounts it and starts its server. NULL, or the reason why that is not possible here. */
static inline const char *silent_fuse_start(struct silent_fuse *f)
{
    static char why[128];
    char options[96];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    strcpy(f->dir, "/tmp/silent.XXXXXX");
    if (fd < 0 || !mkdtemp(f->dir)) {
        snprintf(why, sizeof(why), "/dev/fuse: %s", strerror(errno));
        return why;
    }
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
    if (mount("silent", f->dir, "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
        snprintf(why, sizeof(why), "mount of a FUSE file system: %s", strerror(errno));
        rmdir(f->dir);
        close(fd);
        return why;
    }
    f->server = fork();
    if (f->server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        silent_fuse_serve(fd);
    }
    close(fd);
    return NULL;
}

/* The server dies. Its pages are errors from now on. */
static inline void silent_fuse_end(struct silent_fuse *f)
{
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    umount2(f->dir, MNT_DETACH);
    rmdir(f->dir);
}

#endif
