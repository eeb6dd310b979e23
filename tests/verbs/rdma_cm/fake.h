// SPDX-License-Identifier: BSD-2-Clause
/* A daemon of the test's own, which has connection management and nothing else. It is a process with one thread, and
 * does what a test asks for:
 *
 *   NOTIFY with event E    queues the event E for the ID. E from FAKE_SPECIAL on has a meaning of its own, see below.
 *   SET_OPTION             succeeds if the bytes of the value are 0, 1, 2, …
 *   MIGRATE_ID             moves the ID. The reply is the place of the old channel in the order of their openings.
 *   FAKE_COUNT             a command that no kernel has: fails with EBASE + number of channels that have a reader
 *   all others             succeed
 *
 * The reply to DESTROY_ID says 77 events: a number that the library does not know. */
#ifndef PUMICE_TESTS_VERBS_RDMA_CM_FAKE_H
#define PUMICE_TESTS_VERBS_RDMA_CM_FAKE_H

#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "pumice/abi_cm.h"
#include "tests/verbs/check.h"

#define CM_FILE "/dev/infiniband/rdma_cm"

/* Values of enum rdma_cm_event_type. Its header can't be included beside that of the kernel. */
enum {
    CM_ADDR_RESOLVED = 0,
    CM_CONNECT_REQUEST = 4,
    CM_ESTABLISHED = 9,
    CM_DEVICE_REMOVAL = 11,
    CM_MULTICAST_JOIN = 12,
};

enum {
    FAKE_SPECIAL = 1000,
    FAKE_GONE = FAKE_SPECIAL, /* a byte in the pipe, and no event */
    FAKE_LOST, /* the daemon closes its end of the connection, and lives on */
};
#define FAKE_COUNT 24u
#define FAKE_EBASE 500
#define FAKE_DESTROYED 77

#define FAKE_CHANNELS 512
#define FAKE_EVENTS 64
#define FAKE_CONNECTIONS 16

struct fake_id {
    uint64_t uid;
    int channel;
};
struct fake_daemon {
    struct pollfd poll[1 + FAKE_CONNECTIONS]; /* the listener first */
    bool holds[FAKE_CONNECTIONS][FAKE_CHANNELS];
    int pipe[FAKE_CHANNELS]; /* write ends; 0: none */
    int channels;
    struct fake_id id[1024];
    uint32_t ids;
    struct rdma_ucm_event_resp event[FAKE_EVENTS];
    int event_channel[FAKE_EVENTS];
    int events;
    bool refuses;
    bool lose; /* the connection that is served */
};

static struct {
    char dir[64], socket[96];
    pid_t pid;
} fake;

/* --- the daemon -------------------------------------------------------------------------------- */
static void fake_send(int fd, int status, const void *rep, size_t len, int attach)
{
    struct pm_reply head = {.status = status, .len = (uint32_t)len};
    struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)rep, len}};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    if (attach >= 0) {
        msg.msg_control = &control;
        msg.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &attach, sizeof(int));
    }
    sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static bool fake_has_reader(const struct fake_daemon *d, int channel)
{
    struct pollfd p = {.fd = d->pipe[channel]};
    return poll(&p, 1, 0) == 0;
}

static void fake_queue(struct fake_daemon *d, int channel, const struct rdma_ucm_event_resp *event)
{
    if (d->events < FAKE_EVENTS) {
        d->event[d->events] = *event;
        d->event_channel[d->events++] = channel;
        (void)!write(d->pipe[channel], "", 1);
    }
}

static int fake_notify(struct fake_daemon *d, int channel, const struct rdma_ucm_notify *in)
{
    struct rdma_ucm_event_resp event = {.uid = d->id[in->id].uid, .id = in->id, .event = in->event};
    if (in->event == FAKE_GONE)
        (void)!write(d->pipe[channel], "", 1);
    else if (in->event == FAKE_LOST)
        d->lose = true;
    else {
        if (in->event == CM_CONNECT_REQUEST) {
            event.id = ++d->ids;
            d->id[event.id].channel = channel;
        }
        fake_queue(d, channel, &event);
    }
    return 0;
}

static int fake_get_event(struct fake_daemon *d, int channel, void *rep, size_t *len)
{
    for (int i = 0; i < d->events; i++)
        if (d->event_channel[i] == channel) {
            memcpy(rep, &d->event[i], sizeof(d->event[i]));
            *len = sizeof(d->event[i]);
            memmove(&d->event[i], &d->event[i + 1], (size_t)(d->events - i - 1) * sizeof(d->event[i]));
            memmove(&d->event_channel[i], &d->event_channel[i + 1], (size_t)(d->events - i - 1) * sizeof(int));
            d->events--;
            return 0;
        }
    return -ENODATA;
}

static int fake_count(const struct fake_daemon *d)
{
    int n = 0;
    for (int i = 0; i < d->channels; i++)
        n += fake_has_reader(d, i);
    return n;
}

static int fake_command(struct fake_daemon *d, int channel, const struct pm_cm_command_req *h, const void *in,
                        void *rep, size_t *len)
{
    const uint8_t *extra = (const uint8_t *)in + h->in;
    uint64_t from;
    switch (h->cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
    case RDMA_USER_CM_CMD_JOIN_MCAST:
        *(uint32_t *)rep = ++d->ids;
        d->id[d->ids] = (struct fake_id){((const struct rdma_ucm_create_id *)in)->uid, channel};
        if (h->cmd == RDMA_USER_CM_CMD_JOIN_MCAST)
            d->id[d->ids].uid = ((const struct rdma_ucm_join_mcast *)in)->uid;
        *len = 4;
        return 0;
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
        *(uint32_t *)rep = FAKE_DESTROYED;
        *len = 4;
        return 0;
    case RDMA_USER_CM_CMD_NOTIFY:
        return fake_notify(d, channel, in);
    case RDMA_USER_CM_CMD_GET_EVENT:
        return fake_get_event(d, channel, rep, len);
    case RDMA_USER_CM_CMD_SET_OPTION:
        for (int i = 0; i < h->extra; i++)
            if (extra[i] != (uint8_t)i)
                return -EINVAL;
        return h->extra == ((const struct rdma_ucm_set_option *)in)->optlen ? 0 : -EINVAL;
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        memcpy(&from, extra, sizeof(from));
        *(uint32_t *)rep = (uint32_t)from - FAKE_SPECIAL;
        *len = 4;
        return h->extra == sizeof(from) ? 0 : -EINVAL;
    case FAKE_COUNT:
        return -(FAKE_EBASE + fake_count(d));
    default:
        return 0;
    }
}

static void fake_request(struct fake_daemon *d, int connection, const struct pm_request *rq)
{
    int fd = d->poll[1 + connection].fd, pipes[2];
    const struct pm_cm_channel_req *ch = (const void *)(rq + 1);
    const struct pm_cm_command_req *command = (const void *)(rq + 1);
    uint64_t rep[PM_CM_OUT_MAX / 8];
    size_t len = 0;
    int number = rq->op == PM_OP_CM_HOLD_CHANNEL || rq->op == PM_OP_CM_DROP_CHANNEL || rq->op == PM_OP_CM_COMMAND
                     ? (int)ch->channel - FAKE_SPECIAL
                     : 0;
    bool known = number >= 0 && number < d->channels && fake_has_reader(d, number);
    int rc = 0;
    switch (rq->op) {
    case PM_OP_CM_OPEN:
        fake_send(fd, d->refuses ? -EPROTO : 0, d->refuses ? "not today" : "", d->refuses ? 9 : 0, -1);
        return;
    case PM_OP_CM_CREATE_CHANNEL:
        need(pipe2(pipes, O_CLOEXEC) == 0);
        d->pipe[d->channels] = pipes[1];
        d->holds[connection][d->channels] = true;
        rep[0] = (uint64_t)(FAKE_SPECIAL + d->channels++);
        fake_send(fd, 0, rep, sizeof(struct pm_cm_create_channel_rep), pipes[0]);
        close(pipes[0]);
        return;
    case PM_OP_CM_HOLD_CHANNEL:
        rc = known ? 0 : -ENOENT;
        d->holds[connection][number] = known;
        break;
    case PM_OP_CM_DROP_CHANNEL:
        rc = d->holds[connection][number] ? 0 : -ENOENT;
        d->holds[connection][number] = false;
        break;
    case PM_OP_CM_COMMAND:
        rc = d->holds[connection][number] ? fake_command(d, number, command, command + 1, rep, &len) : -ENOENT;
        len = len < command->out ? len : command->out;
        break;
    default:
        rc = -ENOSYS;
    }
    if (!d->lose)
        fake_send(fd, rc, rep, rc ? 0 : len, -1);
}

static void fake_close(struct fake_daemon *d, int connection)
{
    close(d->poll[1 + connection].fd);
    d->poll[1 + connection].fd = -1;
    memset(d->holds[connection], 0, sizeof(d->holds[connection]));
    d->lose = false;
}

static _Noreturn void fake_main(int listener, bool refuses)
{
    static struct fake_daemon d;
    _Alignas(8) static char message[PM_MSG_MAX];
    d.refuses = refuses;
    d.poll[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (int i = 1; i <= FAKE_CONNECTIONS; i++)
        d.poll[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    for (;;) {
        need(poll(d.poll, 1 + FAKE_CONNECTIONS, -1) > 0);
        for (int i = 0; i < FAKE_CONNECTIONS; i++)
            if (d.poll[1 + i].fd >= 0 && d.poll[1 + i].revents) {
                if (recv(d.poll[1 + i].fd, message, sizeof(message), 0) > 0)
                    fake_request(&d, i, (const void *)message);
                else
                    d.lose = true;
                if (d.lose)
                    fake_close(&d, i);
            }
        for (int i = 0; d.poll[0].revents && i < FAKE_CONNECTIONS; i++)
            if (d.poll[1 + i].fd < 0) {
                d.poll[1 + i].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                d.poll[1 + i].revents = 0;
                break;
            }
    }
}

/* --- for the test ------------------------------------------------------------------------------ */
static inline void fake_file(const char *name, const char *text)
{
    char path[192];
    snprintf(path, sizeof(path), "%s" PM_SYSFS_SUFFIX "%s", fake.socket, name);
    if (!text) {
        need(mkdir(path, 0755) == 0);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

/* Starts the daemon, with the socket of the last one if there was one. */
static inline void fake_start(bool refuses)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (!fake.dir[0]) {
        strcpy(fake.dir, "/tmp/pumice-fake-XXXXXX");
        need(mkdtemp(fake.dir));
        snprintf(fake.socket, sizeof(fake.socket), "%s/sock", fake.dir);
        fake_file("", NULL);
        fake_file("/misc", NULL);
        fake_file("/misc/rdma_cm", NULL);
        fake_file("/misc/rdma_cm/abi_version", "4\n");
        setenv("PUMICE_SOCKET", fake.socket, 1);
        unsetenv("PUMICE_LAB");
    }
    unlink(fake.socket);
    strcpy(addr.sun_path, fake.socket);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    need(bind(listener, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(listener, 16) == 0);
    fflush(stdout);
    pid_t parent = getpid();
    fake.pid = fork();
    need(fake.pid >= 0);
    if (fake.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        fake_main(listener, refuses);
    }
    close(listener);
}

static inline void fake_kill(void)
{
    kill(fake.pid, SIGKILL);
    need(waitpid(fake.pid, NULL, 0) == fake.pid);
}

/* Ends the daemon, and removes its files. */
static inline int fake_end(void)
{
    char command[192];
    fake_kill();
    snprintf(command, sizeof(command), "rm -rf '%s'", fake.dir);
    need(system(command) == 0);
    return vt_failed;
}

static inline int cm_open(int flags)
{
    int fd = open(CM_FILE, O_RDWR | O_CLOEXEC | flags);
    need(fd >= 0);
    return fd;
}

/* Writes a command as librdmacm does. Returns 0 or the error number. */
static inline int cm_raw(int fd, uint32_t cmd, const void *in, size_t in_len, size_t out_len)
{
    char buf[8 + PM_CM_IN_MAX];
    struct rdma_ucm_cmd_hdr h = {cmd, (uint16_t)in_len, (uint16_t)out_len};
    memcpy(buf, &h, sizeof(h));
    memcpy(buf + sizeof(h), in, in_len);
    errno = 0;
    ssize_t n = write(fd, buf, sizeof(h) + in_len);
    return n == (ssize_t)(sizeof(h) + in_len) ? 0 : errno;
}

static inline uint32_t cm_create(int fd, uint64_t uid)
{
    struct rdma_ucm_create_id_resp rep = {0};
    struct rdma_ucm_create_id in = {.uid = uid, .response = (uintptr_t)&rep, .ps = RDMA_PS_TCP, .qp_type = 2};
    return cm_raw(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(rep)) == 0 ? rep.id : 0;
}

/* Returns the number of events, or -errno. */
static inline int cm_end(int fd, uint32_t cmd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp rep = {0};
    struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&rep, .id = id};
    int rc = cm_raw(fd, cmd, &in, sizeof(in), sizeof(rep));
    return rc ? -rc : (int)rep.events_reported;
}

static inline int cm_notify(int fd, uint32_t id, uint32_t event)
{
    struct rdma_ucm_notify in = {.id = id, .event = event};
    return cm_raw(fd, RDMA_USER_CM_CMD_NOTIFY, &in, sizeof(in), 0);
}

static inline int cm_get_event(int fd, struct rdma_ucm_event_resp *event)
{
    struct rdma_ucm_get_event in = {.response = (uintptr_t)event};
    memset(event, 0, sizeof(*event));
    return cm_raw(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(*event));
}

/* The number of channels that the daemon has; -1: fd is no channel. */
static inline int cm_count(int fd)
{
    int rc = cm_raw(fd, FAKE_COUNT, "", 0, 0);
    return rc >= FAKE_EBASE ? rc - FAKE_EBASE : -1;
}

#endif
