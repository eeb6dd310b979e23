// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/control/session_control.h"

#include <errno.h>
#include <fcntl.h>
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
    if (!p)
        return; /* the device has no tag matching */
    rep->tm_max_num_tags = p->max_num_tags;
    rep->tm_max_ops = p->max_ops;
    rep->tm_max_sge = p->max_sge;
    rep->tm_max_rndv_hdr = p->max_rndv_hdr;
    rep->tm_owns_sq = p->owns_send_queue;
}

static void fill_limits(const struct device_limits *l, struct pm_open_rep *rep)
{
    rep->max_mr_size = l->max_mr_size;
    rep->max_msg_size = l->max_msg;
    rep->device_cap_flags = l->cap_flags;
    rep->max_qp = l->max_qp;
    rep->max_qp_wr = l->max_qp_wr;
    rep->max_sge = l->max_sge;
    rep->max_cq = l->max_cq;
    rep->max_cqe = l->max_cqe;
    rep->max_mr = l->max_mr;
    rep->max_pd = l->max_pd;
    rep->max_ah = l->max_ah;
    rep->max_inline = l->max_inline;
    rep->max_rd_atomic = l->max_rd_atomic;
    rep->max_init_rd_atomic = l->max_init_rd_atomic;
    rep->max_mcast_grp = l->max_mcast_grp;
    rep->max_mcast_qp_attach = l->max_mcast_qp;
    rep->max_mw = l->max_mw;
    rep->max_xrcd = l->max_xrcd;
    rep->max_srq = l->max_srq;
    rep->max_srq_wr = l->max_srq_wr;
    rep->max_srq_sge = l->max_srq_sge;
    rep->ack_delay = l->ack_delay;
}

static void fill_profile(const struct device_limits *l, struct pm_open_rep *rep)
{
    rep->page_size_cap = l->page_size_cap;
    rep->max_dm_size = (uint64_t)l->max_dm_kb << 10;
    rep->vendor_id = l->vendor_id;
    rep->vendor_part_id = l->vendor_part_id;
    rep->hw_ver = l->hw_ver;
    rep->max_queue_wr = l->max_queue_wr;
    rep->max_sge_rd = l->max_sge_rd;
    rep->max_res_rd_atom = l->max_res_rd_atom;
    rep->max_pkeys = l->max_pkeys;
    rep->atomic_cap = l->atomic_cap;
    rep->odp_rc = l->odp_rc;
    rep->odp_uc = l->odp_uc;
    rep->odp_ud = l->odp_ud;
    rep->odp_xrc = l->odp_xrc;
    rep->max_cq_period = l->max_cq_period;
    rep->absent = l->absent;
    rep->queue_rule = l->queue_rule;
}

static void fill_reply(const struct session *s, struct control_reply *rp)
{
    struct pm_open_rep *rep = control_payload(rp, sizeof(*rep));
    const struct device *d = s->device;
    enum tm_profile_id id;

    device_describe(d, &rep->desc);
    rep->session = s->number;
    rep->memory_path = s->client_mem->path;
    fill_limits(&d->limits, rep);
    fill_profile(&d->limits, rep);
    fill_tm_caps(profile_tag_matching(&d->limits, d->settings->tm_profile, &id), rep);
    rep->hca_core_clock_khz = 1000000; /* timestamps are in nanoseconds */
    rep->unkind = d->unkind.kinds;
    rep->unkind_seed = d->unkind.seed;
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
