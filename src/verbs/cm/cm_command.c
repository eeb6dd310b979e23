// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <string.h>

#include "pumice/abi_cm.h"
#include "src/verbs/base/event_fd.h"
#include "src/verbs/cm/cm_descriptor.h"
#include "src/verbs/cm/cm_lock.h"
#include "src/verbs/cm/user_memory.h"

#define NUM_COMMANDS 25u /* of rdma_user_cm.h of Linux 6.18 */
#define NO_RESPONSE (-1)

/* A command under way. */
struct command {
    int fd;
    struct vb_cm_channel *channel;
    struct vb_cm_channel *from; /* MIGRATE_ID: the old channel of the ID */
    struct {
        struct pm_cm_command_req head;
        uint8_t bytes[2 * PM_CM_IN_MAX]; /* the struct of the command, then what belongs to it. The rest is zero. */
    } req;
    _Alignas(8) uint8_t in[PM_CM_IN_MAX]; /* the struct of the command, filled up with zeros */
    _Alignas(8) uint8_t rep[PM_CM_OUT_MAX];
    size_t rep_len; /* room in rep; then the length of the reply */
};

/* Where the struct of a command has the address for the response. */
static int response_at(uint32_t cmd)
{
    switch (cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
        return offsetof(struct rdma_ucm_create_id, response);
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
        return offsetof(struct rdma_ucm_destroy_id, response);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
        return offsetof(struct rdma_ucm_query, response);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
        return offsetof(struct rdma_ucm_init_qp_attr, response);
    case RDMA_USER_CM_CMD_GET_EVENT:
        return offsetof(struct rdma_ucm_get_event, response);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
        return offsetof(struct rdma_ucm_join_ip_mcast, response);
    case RDMA_USER_CM_CMD_JOIN_MCAST:
        return offsetof(struct rdma_ucm_join_mcast, response);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        return offsetof(struct rdma_ucm_migrate_id, response);
    default:
        return NO_RESPONSE;
    }
}

/* The part of the reply at type, if the reply is that long. */
#define REPLY(command, type) ((command)->rep_len >= sizeof(type) ? (const type *)(const void *)(command)->rep : NULL)
#define INPUT(command, type) ((const type *)(const void *)(command)->in)

/* The first bytes of an event are enough to count it. Old programs get no more. */
#define EVENT_MIN offsetof(struct rdma_ucm_event_resp, reserved)

/* --- what the process knows about its IDs ------------------------------------------------------ */
/* The caller holds the lock. */
static void note_new(struct command *c)
{
    const struct rdma_ucm_create_id_resp *rep = REPLY(c, struct rdma_ucm_create_id_resp);
    if (!rep)
        return;
    switch (c->req.head.cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
        vb_cm_ids_add(&c->channel->ids, rep->id, INPUT(c, struct rdma_ucm_create_id)->uid);
        break;
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST: {
        const struct rdma_ucm_join_ip_mcast *in = INPUT(c, struct rdma_ucm_join_ip_mcast);
        vb_cm_ids_join(&c->channel->ids, rep->id, in->uid, in->id);
        break;
    }
    default: {
        const struct rdma_ucm_join_mcast *in = INPUT(c, struct rdma_ucm_join_mcast);
        vb_cm_ids_join(&c->channel->ids, rep->id, in->uid, in->id);
    }
    }
}

/* Notes what a command did. It runs in the order of the replies. So if one thread gets an event, and another destroys
 * the ID, both agree how many events there were. */
static void note(const struct vb_call *call)
{
    struct command *c = call->arg;
    struct vb_cm_ids *ids = &c->channel->ids;
    struct rdma_ucm_event_resp event = {0};
    uint32_t reported;
    vb_cm_lock();
    switch (c->req.head.cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
    case RDMA_USER_CM_CMD_JOIN_MCAST:
        note_new(c);
        break;
    case RDMA_USER_CM_CMD_DESTROY_ID:
        vb_cm_ids_destroy(ids, INPUT(c, struct rdma_ucm_destroy_id)->id, &reported);
        break;
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
        vb_cm_ids_leave(ids, INPUT(c, struct rdma_ucm_destroy_id)->id, &reported);
        break;
    case RDMA_USER_CM_CMD_ACCEPT:
        if (INPUT(c, struct rdma_ucm_accept)->conn_param.valid)
            vb_cm_ids_name(ids, INPUT(c, struct rdma_ucm_accept)->id, INPUT(c, struct rdma_ucm_accept)->uid);
        break;
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        vb_cm_ids_move(&c->from->ids, ids, INPUT(c, struct rdma_ucm_migrate_id)->id);
        break;
    case RDMA_USER_CM_CMD_GET_EVENT:
        memcpy(&event, c->rep, c->rep_len < sizeof(event) ? c->rep_len : sizeof(event));
        vb_cm_ids_count(ids, &event);
        break;
    }
    vb_cm_unlock();
}

/* --- answers for a daemon that has died -------------------------------------------------------- */
static void answer(struct command *c, const void *rep, size_t len)
{
    c->rep_len = len < c->req.head.out ? len : c->req.head.out;
    memcpy(c->rep, rep, c->rep_len);
}

static int after_death(struct command *c)
{
    struct vb_cm_ids *ids = &c->channel->ids;
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_destroy_id_resp end = {0};
    bool done, more = true;
    vb_cm_lock();
    switch (c->req.head.cmd) {
    case RDMA_USER_CM_CMD_GET_EVENT:
        done = vb_cm_ids_removal(ids, &event, &more);
        if (done)
            answer(c, &event, sizeof(event));
        break;
    case RDMA_USER_CM_CMD_DESTROY_ID:
        done = vb_cm_ids_destroy(ids, INPUT(c, struct rdma_ucm_destroy_id)->id, &end.events_reported);
        answer(c, &end, sizeof(end));
        break;
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
        done = vb_cm_ids_leave(ids, INPUT(c, struct rdma_ucm_destroy_id)->id, &end.events_reported);
        answer(c, &end, sizeof(end));
        break;
    default:
        done = false;
    }
    vb_cm_unlock();
    if (!more)
        vb_event_fd_silence(c->fd, c->channel->pipe);
    return done ? 0 : -ENODEV;
}

/* --- requests to the daemon -------------------------------------------------------------------- */
static int ask(struct command *c)
{
    struct vb_call call = {
        .op = PM_OP_CM_COMMAND,
        .req = &c->req,
        .req_len = sizeof(c->req.head) + c->req.head.in + c->req.head.extra,
        .rep = c->rep,
        .rep_len = c->req.head.out,
        .rep_size = &c->rep_len,
        .done = note,
        .arg = c,
    };
    int rc = vb_cm_channel_call(c->channel, &call);
    return rc == -ENODEV && atomic_load(&c->channel->dead) ? after_death(c) : rc;
}

/* Another thread has closed the channel during this call. The kernel keeps the file until the call ends, and the call
 * waits for an event that never comes. rping ends in this way: an error would be its exit code. */
static void wait_for_ever(void)
{
    for (;;)
        poll(NULL, 0, -1);
}

/* Takes one event. Returns -ENODATA if it is gone, because its ID was destroyed. */
static int take_event(struct command *c)
{
    char byte;
    if (atomic_load(&c->channel->dead))
        return after_death(c);
    ssize_t n = vb_event_fd_read(c->fd, c->channel->pipe, &byte, 1);
    int e = errno;
    if (n <= 0 && vb_cm_channel_is_closed(c->channel))
        wait_for_ever();
    if (n < 0)
        return -e;
    if (n == 0) {
        atomic_store(&c->channel->dead, true);
        return after_death(c);
    }
    int rc = ask(c);
    if (rc == -ENOENT && vb_cm_channel_is_closed(c->channel))
        wait_for_ever();
    return rc;
}

static int get_event(struct command *c)
{
    int rc;
    if (c->req.head.out < EVENT_MIN)
        return -ENOSPC;
    do
        rc = take_event(c);
    while (rc == -ENODATA);
    return rc;
}

/* Appends the value of the option to the request. */
static int set_option(struct command *c)
{
    const struct rdma_ucm_set_option *in = INPUT(c, struct rdma_ucm_set_option);
    if (in->optlen > PM_CM_IN_MAX)
        return -EINVAL;
    int rc = vb_user_read(c->req.bytes + c->req.head.in, in->optval, in->optlen);
    if (rc)
        return rc;
    c->req.head.extra = (uint16_t)in->optlen;
    return ask(c);
}

/* Appends the number of the ID's channel to the request. */
static int migrate_id(struct command *c)
{
    int fd = (int)INPUT(c, struct rdma_ucm_migrate_id)->fd;
    c->from = vb_cm_marked(fd) ? vb_cm_channel_at(fd) : NULL;
    if (!c->from)
        return fcntl(fd, F_GETFD) < 0 ? -ENOENT : -EINVAL;
    int rc = vb_cm_channel_use(c->from);
    if (rc == 0) {
        memcpy(c->req.bytes + c->req.head.in, &c->from->number, sizeof(c->from->number));
        c->req.head.extra = sizeof(c->from->number);
        rc = ask(c);
    }
    vb_cm_channel_release(c->from);
    return rc;
}

static int carry_out(struct command *c)
{
    switch (c->req.head.cmd) {
    case RDMA_USER_CM_CMD_GET_EVENT:
        return get_event(c);
    case RDMA_USER_CM_CMD_SET_OPTION:
        return set_option(c);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        return migrate_id(c);
    default:
        return ask(c);
    }
}

/* Reads the header and the struct of the command, len bytes at buf. */
static int take_in(struct command *c, uint64_t buf, size_t len)
{
    struct rdma_ucm_cmd_hdr h;
    if (len < sizeof(h))
        return -EINVAL;
    int rc = vb_user_read(&h, buf, sizeof(h));
    if (rc)
        return rc;
    if (h.cmd >= NUM_COMMANDS || h.in + sizeof(h) > len)
        return -EINVAL;
    if (h.cmd == RDMA_USER_CM_CMD_GET_OPTION)
        return -ENOSYS;
    uint16_t in = h.in < PM_CM_IN_MAX ? h.in : PM_CM_IN_MAX;
    rc = vb_user_read(c->in, buf + sizeof(h), in);
    if (rc)
        return rc;
    memset(c->in + in, 0, sizeof(c->in) - in);
    memcpy(c->req.bytes, c->in, in);
    c->req.head = (struct pm_cm_command_req){
        .channel = c->channel->number,
        .cmd = h.cmd,
        .in = in,
        .out = h.out < PM_CM_OUT_MAX ? h.out : PM_CM_OUT_MAX,
    };
    return 0;
}

ssize_t vb_cm_write(int fd, struct vb_cm_channel *ch, const void *buf, size_t len)
{
    struct command c;
    uint64_t response;
    c.fd = fd;
    c.channel = ch;
    c.from = NULL;
    c.rep_len = 0;
    int rc = take_in(&c, (uintptr_t)buf, len);
    if (rc == 0)
        rc = carry_out(&c);
    if (rc)
        return rc;
    int at = response_at(c.req.head.cmd);
    if (at == NO_RESPONSE)
        return (ssize_t)len;
    memcpy(&response, c.in + at, sizeof(response));
    rc = vb_user_write(response, c.rep, c.rep_len);
    return rc ? rc : (ssize_t)len;
}
