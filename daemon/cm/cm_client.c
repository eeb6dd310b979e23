// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/cm_client.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/cm/command/command.h"
#include "daemon/control/dispatch.h"
#include "daemon/threads/fd_closer.h"

struct cm_client {
    struct control_turn turn; /* first */
    struct cm_clients *clients;
    TAILQ_ENTRY(cm_client) link;
    struct quota_owner owner;
    struct ucred cred;
    int sock;
    ev_io readable;
};

static void drop(struct cm_client *c)
{
    struct cm_clients *cs = c->clients;

    control_turn_fini(&cs->turns, &c->turn);
    ev_io_stop(cs->host->loop, &c->readable);
    TAILQ_REMOVE(&cs->list, c, link);
    quota_release(&c->owner, QUOTA_CM_CONNECTIONS);
    fd_closer_close_socket(c->sock, c->cred.uid);
    free(c);
}

/* --- operations -------------------------------------------------------------------------------- */

static int create_channel(struct cm_client *c, struct control_reply *rp)
{
    struct cm_host *h = c->clients->host;
    struct pm_cm_create_channel_rep *rep;
    char why[QUOTA_WHY_MAX];
    struct cm_channel *ch;
    int fd;

    int rc = cm_channel_create(h, c->cred.uid, c->cred.pid, ucma_channel_end, &ch, &fd, why);
    if (rc)
        return control_fail(rp, rc, "%s", why);
    rep = control_payload(rp, sizeof(*rep));
    rep->channel = ch->token;
    control_attach(rp, fd);
    return 0;
}

/* The process has closed its last descriptor. The loop may report the end of the pipe later than the reply. */
static int drop_channel(struct cm_channel *ch)
{
    if (!cm_pipe_has_reader(&ch->pipe))
        ucma_channel_end(ch);
    return 0;
}

static int on_channel(struct cm_client *c, const struct control_request *rq, struct control_reply *rp)
{
    struct cm_host *h = c->clients->host;
    /* Both structs begin with the channel. */
    struct cm_channel *ch = cm_channel_find(h, c->cred.uid, ((const struct pm_cm_channel_req *)rq->payload)->channel);

    if (!ch)
        return control_fail(rp, -ENOENT, "this user has no such channel");
    switch (rq->op) {
    case PM_OP_CM_DROP_CHANNEL:
        return drop_channel(ch);
    case PM_OP_CM_COMMAND:
        return command_run(h, ch, rq->payload, rq->len, rp, clock_ns());
    default:
        return 0; /* PM_OP_CM_HOLD_CHANNEL */
    }
}

static int dispatch(struct cm_client *c, const struct control_request *rq, struct control_reply *rp)
{
    if (rq->op == PM_OP_CM_CREATE_CHANNEL && rq->len == 0)
        return create_channel(c, rp);
    if ((rq->op == PM_OP_CM_COMMAND && rq->len >= sizeof(struct pm_cm_command_req)) ||
        ((rq->op == PM_OP_CM_HOLD_CHANNEL || rq->op == PM_OP_CM_DROP_CHANNEL) &&
         rq->len == sizeof(struct pm_cm_channel_req)))
        return on_channel(c, rq, rp);
    return control_fail(rp, -EINVAL, "operation %u with %u bytes: this connection is for connection management", rq->op,
                        rq->len);
}

static void serve(struct control_turn *turn)
{
    struct cm_client *c = (struct cm_client *)(void *)turn;
    struct control_reply rp = {.status = 0, .len = 0, .fds = 0};
    struct control_request rq;
    int rc = control_recv(c->sock, c->cred.uid, &rq);

    if (rc == 0)
        return;
    if (rc < 0) {
        drop(c);
        return;
    }
    activity_begin(c->clients->activity, control_op_name(rq.op), 0, c->cred.pid);
    rp.status = dispatch(c, &rq, &rp);
    activity_done(c->clients->activity);
    control_request_fini(&rq);
    if (!control_send(c->sock, &rp))
        drop(c);
}

static void on_request(struct ev_loop *loop, ev_io *w, int revents)
{
    struct cm_client *c = w->data;

    (void)loop;
    if (revents & EV_ERROR)
        drop(c);
    else
        control_turn_ask(&c->clients->turns, &c->turn);
}

/* --- start and end ----------------------------------------------------------------------------- */

/* Returns NULL after an error, with the reply. */
static struct cm_client *make(struct cm_clients *cs, int sock, const struct ucred *cred, struct control_reply *rp)
{
    struct cm_client *c = calloc(1, sizeof(*c));
    char why[QUOTA_WHY_MAX];

    if (!c || control_turn_init(&cs->turns, &c->turn, cred->uid, &c->readable, serve) != 0) {
        free(c);
        rp->status = control_fail(rp, -ENOMEM, "the daemon is out of memory");
        return NULL;
    }
    c->owner = (struct quota_owner){cs->host->quota, cred->uid, 0};
    rp->status = quota_charge(&c->owner, QUOTA_CM_CONNECTIONS, why);
    if (rp->status) {
        control_fail(rp, rp->status, "%s", why);
        control_turn_fini(&cs->turns, &c->turn);
        free(c);
        return NULL;
    }
    c->clients = cs;
    c->cred = *cred;
    c->sock = sock;
    return c;
}

void cm_client_open(struct cm_clients *cs, int sock, const struct ucred *cred)
{
    struct control_reply rp = {.status = 0, .len = 0, .fds = 0};
    struct cm_client *c = make(cs, sock, cred, &rp);
    bool sent = control_send(sock, &rp);

    if (!c) {
        fd_closer_close_socket(sock, cred->uid);
        return;
    }
    TAILQ_INSERT_TAIL(&cs->list, c, link);
    ev_io_init(&c->readable, on_request, sock, EV_READ);
    c->readable.data = c;
    ev_io_start(cs->host->loop, &c->readable);
    if (!sent)
        drop(c);
}

void cm_clients_init(struct cm_clients *cs, struct cm_host *h, struct activity *activity, unsigned control_share)
{
    *cs = (struct cm_clients){.host = h, .activity = activity};
    TAILQ_INIT(&cs->list);
    control_turns_init(&cs->turns, h->loop, control_share);
}

void cm_clients_fini(struct cm_clients *cs)
{
    while (!TAILQ_EMPTY(&cs->list))
        drop(TAILQ_FIRST(&cs->list));
    control_turns_fini(&cs->turns);
}
