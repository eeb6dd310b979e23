// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/control/session_control.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/control/dispatch.h"
#include "daemon/control/session_end.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "daemon/session/stuck_memory.h"
#include "daemon/threads/fd_closer.h"
#include "pumice/version.h"

/* --- the connection ---------------------------------------------------------------------------- */

/* The kernel refuses to watch a descriptor of the session (no memory, or /proc/sys/fs/epoll/max_user_watches). Nothing
 * would serve the client then, so the session ends, and the client sees it. */
static bool ended_by_error(struct session *s, int revents)
{
    if (!(revents & EV_ERROR))
        return false;
    log_warn("session %u (%s, pid %d) ends: the kernel can't watch its descriptors", s->number, s->comm,
             (int)s->cred.pid);
    session_end(s);
    return true;
}

static void serve(struct control_turn *turn)
{
    struct session *s = (struct session *)(void *)turn;
    struct control_request rq;
    struct control_reply rp;
    int rc = control_recv(s->sock, s->cred.uid, &rq);
    if (rc == 0)
        return;
    if (rc > 0) {
        control_dispatch(s, &rq, &rp);
        control_request_fini(&rq);
        if (control_send(s->sock, &rp))
            return;
    }
    session_end(s);
}

static void on_request(struct ev_loop *loop, ev_io *w, int revents)
{
    struct session *s = w->data;

    (void)loop;
    if (!ended_by_error(s, revents))
        control_turn_ask(&s->device->control_turns, &s->turn);
}

static void on_death(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    if (!ended_by_error(w->data, revents))
        session_end(w->data);
}

static void on_doorbell(struct ev_loop *loop, ev_io *w, int revents)
{
    uint64_t n;

    (void)loop;
    if (ended_by_error(w->data, revents))
        return;
    if (read(w->fd, &n, sizeof(n)) < 0) {
        /* The doorbell only wakes the loop. */
    }
}

/* --- opening ----------------------------------------------------------------------------------- */

static void start_watchers(struct session *s)
{
    struct ev_loop *loop = s->device->loop;

    ev_io_init(&s->doorbell_rang, on_doorbell, s->doorbell_fd, EV_READ);
    s->doorbell_rang.data = s;
    ev_io_start(loop, &s->doorbell_rang);
    ev_io_init(&s->died, on_death, s->pid_fd, EV_READ);
    s->died.data = s;
    if (s->pid_fd >= 0)
        ev_io_start(loop, &s->died);
    ev_io_init(&s->sock_readable, on_request, s->sock, EV_READ);
    s->sock_readable.data = s;
    if (s->sock >= 0)
        ev_io_start(loop, &s->sock_readable);
}

static void fill_tm_caps(const struct tm_profile *p, struct pm_open_rep *rep)
{
    rep->tm_max_num_tags = p->max_num_tags;
    rep->tm_max_ops = p->max_ops;
    rep->tm_max_sge = p->max_sge;
    rep->tm_max_rndv_hdr = p->max_rndv_hdr;
    rep->tm_owns_sq = p->owns_send_queue;
}

/* Flags of device_cap_flags_ex that later headers define: IB_UVERBS_DEVICE_FLUSH_GLOBAL and
 * IB_UVERBS_DEVICE_ATOMIC_WRITE. */
#define DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

static void fill_reply(const struct session *s, struct control_reply *rp)
{
    struct pm_open_rep *rep = control_payload(rp, sizeof(*rep));

    device_describe(s->device, &rep->desc);
    rep->session = s->number;
    rep->memory_path = s->client_mem->path;
    rep->max_mr_size = UINT64_MAX;
    rep->max_msg_size = DEVICE_MAX_MSG;
    rep->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                            IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
                            IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                            DEVICE_FLUSH_GLOBAL | DEVICE_ATOMIC_WRITE;
    rep->max_qp = DEVICE_MAX_QP;
    rep->max_qp_wr = DEVICE_MAX_QP_WR;
    rep->max_sge = ENGINE_MAX_SGE;
    rep->max_cq = DEVICE_MAX_CQ;
    rep->max_cqe = DEVICE_MAX_CQE;
    rep->max_mr = DEVICE_MAX_MR;
    rep->max_pd = DEVICE_MAX_PD;
    rep->max_ah = 65536;
    rep->max_inline = ENGINE_MAX_INLINE;
    rep->max_rd_atomic = DEVICE_MAX_RD_ATOMIC;
    rep->max_mcast_grp = DEVICE_MAX_MCAST_GRP;
    rep->max_mcast_qp_attach = DEVICE_MAX_MCAST_QP;
    rep->max_mw = DEVICE_MAX_MW;
    rep->max_xrcd = DEVICE_MAX_XRCD;
    rep->max_srq = DEVICE_MAX_SRQ;
    rep->max_srq_wr = DEVICE_MAX_QP_WR;
    rep->max_srq_sge = ENGINE_MAX_SGE;
    rep->hca_core_clock_khz = 1000000; /* timestamps are in nanoseconds */
    rep->ack_delay = 15;
    fill_tm_caps(tm_profile(s->device->settings->tm_profile), rep);
    snprintf(rep->fw_ver, sizeof(rep->fw_ver), "%s", PUMICE_VERSION);
}

int session_open(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq,
                 struct client_fds fds, struct control_reply *rp, struct session **out)
{
    struct session *s = NULL;

    rp->len = 0;
    int rc = session_create(d, sock, cred, rq, fds, rp, &s);
    int doorbell = rc ? -1 : fcntl(s->doorbell_fd, F_DUPFD_CLOEXEC, 0);

    if (rc == 0 && doorbell < 0)
        rc = -errno;
    if (rc == 0)
        rc = control_turn_init(&d->control_turns, &s->turn, cred->uid, &s->sock_readable, serve);
    if (rc) {
        if (doorbell >= 0)
            close(doorbell);
        if (s)
            session_destroy(s);
        if (rc == -ETIMEDOUT) {
            stuck_memory_strike(d, cred, "a new client");
            return rp->status = control_fail(rp, rc, "the memory of process %d does not answer", (int)cred->pid);
        }
        return rp->status = control_explain(rp, rc, "the daemon can't take another client: %s", strerror(-rc));
    }
    TAILQ_INSERT_TAIL(&d->sessions, s, link);
    d->num_sessions++;
    start_watchers(s);
    rp->status = 0;
    fill_reply(s, rp);
    control_attach(rp, segment_take_fd(&s->page_segment));
    control_attach(rp, doorbell);
    control_attach(rp, event_pipe_take_read_fd(&s->async));
    log_info("session %u on %s: %s, pid %d, uid %u, memory by %s", s->number, d->name, s->comm, (int)cred->pid,
             cred->uid, client_mem_path_name(s->client_mem->path));
    if (s->client_mem->path == PM_MEMORY_NONE)
        log_warn("session %u (%s, pid %d): its memory can't be reached, so it can't register any", s->number, s->comm,
                 (int)cred->pid);
    *out = s;
    return 0;
}
