// SPDX-License-Identifier: BSD-2-Clause
/* Descriptors of files on a FUSE server that does not answer. The daemon needs to know what such a descriptor is. It asks
 * nothing of the server. Needs root, for the mount. */
#include <sched.h>
#include <sys/mount.h>

#include "tests/verbs/hostile/hostile.h"

static int root_dir = -1, mem_file = -1;

/* Mounts a FUSE file system whose server never answers, and takes descriptors of it. */
static bool mount_dead(const char *dir)
{
    char options[128], path[128];
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fuse < 0 || unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    /* The root of the file system is called mem, as a file of /proc that the daemon takes. */
    snprintf(path, sizeof(path), "%s/mem", dir);
    snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=0,group_id=0,allow_other", fuse);
    close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    if (mount("dead", path, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
        mem_file = open(path, O_PATH | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/dir", dir);
    need(mkdir(path, 0700) == 0);
    fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
    if (mount("dead", path, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
        root_dir = open(path, O_PATH | O_CLOEXEC);
    return mem_file >= 0 && root_dir >= 0;
}

static void unmount(const char *dir)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/mem", dir);
    umount2(path, MNT_DETACH);
    unlink(path);
    snprintf(path, sizeof(path), "%s/dir", dir);
    umount2(path, MNT_DETACH);
    rmdir(path);
}

static void as_memory(const struct hostile *h)
{
    int sock = hostile_connect(h);

    ok(hostile_open(sock, &mem_file, 1) == 0, "OPEN with a file in the place of /proc/self/mem is answered");
}

static void as_an_xrc_domain(const struct hostile *h)
{
    struct pm_open_xrcd_req rq = {.has_fd = 1, .oflags = O_CREAT};
    int sock = hostile_connect(h);

    need(hostile_open(sock, NULL, 0) == 0);
    need(hostile_send(sock, PM_OP_OPEN_XRCD, &rq, sizeof(rq), &root_dir, 1));
    ok(hostile_reply(sock, NULL, 0) <= 0, "OPEN_XRCD is answered");
}

int main(void)
{
    struct hostile h;

    VT_OWN("files on a dead FUSE server");
    if (geteuid() != 0) {
        printf("skip - a FUSE server needs root\n");
        return 77;
    }
    hostile_start(&h, -1, NULL, NULL);
    if (!mount_dead(h.dir)) {
        unmount(h.dir);
        hostile_stop(&h);
        printf("skip - can't mount a FUSE file system: %s\n", strerror(errno));
        return 77;
    }
    hostile_attack(&h, as_memory, "a file on a dead FUSE server in the place of memory");
    hostile_attack(&h, as_an_xrc_domain, "a directory on a dead FUSE server in the place of an XRC domain's file");
    unmount(h.dir);
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
