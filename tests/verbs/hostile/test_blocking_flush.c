// SPDX-License-Identifier: BSD-2-Clause
/* Descriptors whose close() blocks until their file system answers: files of a FUSE server that is silent when the daemon
 * closes them. A client sends many of them. The daemon takes no more than it can close later, and goes on. Needs root,
 * for the mount. */
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "tests/verbs/hostile/hostile.h"

static int file = -1; /* of the FUSE server */

/* --- the server: one file, which is the root of its file system ---------------------------------- */

static void answer(int fuse, const struct fuse_in_header *in, const void *body, size_t len)
{
    char out[256];
    struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + len), .unique = in->unique};

    memcpy(out, &head, sizeof(head));
    if (len)
        memcpy(out + sizeof(head), body, len);
    (void)!write(fuse, out, sizeof(head) + len);
}

static bool from_daemon(pid_t daemon, uint32_t thread)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%u", daemon, thread);
    return access(path, F_OK) == 0;
}

static void serve(int fuse, pid_t daemon)
{
    static char buf[FUSE_MIN_READ_BUFFER + 4096];
    const struct fuse_init_out init = {
        .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
    const struct fuse_open_out opened = {.fh = 1};
    const struct fuse_attr_out attr = {.attr_valid = 3600,
                                       .attr = {.ino = FUSE_ROOT_ID, .mode = S_IFREG | 0600, .nlink = 1}};

    while (read(fuse, buf, sizeof(buf)) >= (ssize_t)sizeof(struct fuse_in_header)) {
        const struct fuse_in_header *in = (const void *)buf;

        if (in->opcode == FUSE_INIT)
            answer(fuse, in, &init, sizeof(init));
        else if (in->opcode == FUSE_OPEN)
            answer(fuse, in, &opened, sizeof(opened));
        else if (in->opcode == FUSE_GETATTR)
            answer(fuse, in, &attr, sizeof(attr));
        else if (in->opcode != FUSE_FLUSH || !from_daemon(daemon, in->pid))
            answer(fuse, in, NULL, 0);
    }
    _exit(0);
}

/* Mounts the file, starts its server, and opens it. Returns the server, or -1. */
static pid_t mount_file(const struct hostile *h, const char *path)
{
    char options[128];
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fuse < 0 || unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -1;
    close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=0,group_id=0,allow_other", fuse);
    if (mount("silent", path, "fuse", MS_NOSUID | MS_NODEV, options) != 0)
        return -1;
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(fuse, h->daemon);
    }
    close(fuse);
    file = open(path, O_RDWR | O_CLOEXEC);
    return file >= 0 ? server : -1;
}

/* --- attacks ------------------------------------------------------------------------------------- */

/* More than the daemon keeps for later: it refuses the next ones, and says why. */
static void too_many(const struct hostile *h)
{
    const int fd[4] = {file, file, file, file};
    char why[PM_WHY_MAX] = "";
    int status = 0;

    for (unsigned i = 0; i < 16; i++) {
        int sock = hostile_connect(h);

        need(hostile_send(sock, PM_OP_LIST, NULL, 0, fd, 4));
        status = hostile_reply(sock, NULL, 0);
        need(status == 0 || status == -EBUSY);
        close(sock);
    }
    usleep(500000); /* until the daemon takes the close() calls for stuck */
    int other = hostile_connect(h);
    need(hostile_send(other, PM_OP_LIST, NULL, 0, fd, 1));
    usleep(50000); /* the daemon has closed the connection when this program reads */
    ok(hostile_reply(other, why, sizeof(why)) == -EBUSY && strstr(why, "descriptors"),
       "after many of them, the daemon takes no more, with a reason");
    ok(hostile_answers(h, PM_OP_LIST), "it still answers the same user");
}

/* While the threads that close the descriptors of a user are stuck, the user opens and ends connections. Their sockets do
 * not wait for these threads: otherwise the daemon would soon have no descriptors left for anybody. */
static void connections_meanwhile(const struct hostile *h)
{
    long before = hostile_status_number(h, "\"fds_closing\"");

    for (unsigned i = 0; i < 200; i++)
        need(hostile_answers(h, PM_OP_LIST));
    long waiting = hostile_status_number(h, "\"fds_closing\"");
    printf("# %ld descriptors wait, %ld before\n", waiting, before);
    ok(before > 0 && waiting >= 0 && waiting < before + 50, "ended connections leave no descriptors behind");
}

int main(void)
{
    struct hostile h;
    char path[128];

    VT_OWN("descriptors whose close waits for a file system");
    if (geteuid() != 0) {
        printf("skip - a FUSE server needs root\n");
        return 77;
    }
    hostile_start(&h, -1, NULL, NULL);
    snprintf(path, sizeof(path), "%s/file", h.dir);
    pid_t server = mount_file(&h, path);
    if (server < 0) {
        unlink(path);
        hostile_stop(&h);
        printf("skip - can't mount a FUSE file system: %s\n", strerror(errno));
        return 77;
    }
    hostile_attack(&h, too_many, "many files of a silent FUSE server");
    hostile_attack(&h, connections_meanwhile, "connections while descriptors can't be closed");
    kill(server, SIGKILL); /* the kernel ends what waits for it */
    waitpid(server, NULL, 0);
    umount2(path, MNT_DETACH);
    unlink(path);
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
