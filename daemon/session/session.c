// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/objects/objects.h"
#include "pumice/version.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* --- the connection
 * ---------------------------------------------------------------------------------------------------- */

static void on_request(struct ev_loop *loop, ev_io *w, int revents)
{
    struct session *s = w->data;
    struct control_request rq;
    struct control_reply rp;
    int rc;

    (void)loop;
    (void)revents;
    rc = control_recv(s->sock, &rq);
    if (rc == 0)
        return;
    if (rc > 0) {
        control_handle(s, &rq, &rp);
        control_request_fini(&rq);
        if (control_send(s->sock, &rp))
            return;
    }
    session_close(s);
}

static void on_death(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    session_close(w->data);
}

static void on_bell(struct ev_loop *loop, ev_io *w, int revents)
{
    uint64_t n;

    (void)loop;
    (void)revents;
    if (read(w->fd, &n, sizeof(n)) < 0) {
        /* The loop is awake, and that was the point. */
    }
}

/* A descriptor that becomes readable when the client dies. The process number alone could be another's by now, which
 * the newer of the two ways rules out. */
static int open_pid_fd(int sock, pid_t pid)
{
    int fd = -1;
    socklen_t len = sizeof(fd);

    if (sock >= 0 && getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static void read_comm(struct session *s)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)s->cred.pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, s->comm, sizeof(s->comm) - 1) : 0;
    if (fd >= 0)
        close(fd);
    s->comm[n > 0 ? n : 0] = 0;
    s->comm[strcspn(s->comm, "\n")] = 0;
    if (!s->comm[0])
        strcpy(s->comm, "?"); /* in a PID namespace that we don't see: another container */
}

/* --- opening
 * ----------------------------------------------------------------------------------------------------------- */

static void start_watchers(struct session *s)
{
    struct ev_loop *loop = s->device->loop;

    ev_io_init(&s->bell, on_bell, s->bell_fd, EV_READ);
    s->bell.data = s;
    ev_io_start(loop, &s->bell);
    ev_io_init(&s->died, on_death, s->pid_fd, EV_READ);
    s->died.data = s;
    if (s->pid_fd >= 0)
        ev_io_start(loop, &s->died);
    ev_io_init(&s->sock_readable, on_request, s->sock, EV_READ);
    s->sock_readable.data = s;
    if (s->sock >= 0)
        ev_io_start(loop, &s->sock_readable);
}

static int acquire(struct session *s, const struct pm_open_req *rq, int mem_fd)
{
    struct device *d = s->device;
    int rc;

    s->space = calloc(1, sizeof(*s->space));
    if (!s->space) {
        if (mem_fd >= 0)
            close(mem_fd);
        return -ENOMEM;
    }
    client_mem_init(s->space, 0, s->cred.pid, mem_fd, s->cred.uid == geteuid(), d->settings->memory, rq->probe_va,
                    rq->probe_value);
    rc = mem_backend_add(&d->memory, s->space);
    if (rc) {
        client_mem_fini(s->space);
        free(s->space);
        s->space = NULL;
        return rc;
    }
    s->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->bell_fd < 0)
        return -errno;
    rc = segment_create(&s->page_segment, "pumice-session", sizeof(struct pm_session_page));
    if (rc)
        return rc;
    s->page = s->page_segment.p;
    return event_pipe_init(&s->async, d->loop);
}

/* Frees what is there, as far as it is there. */
static void release(struct session *s)
{
    struct device *d = s->device;

    if (s->async.loop)
        event_pipe_fini(&s->async);
    segment_destroy(&s->page_segment);
    if (s->bell_fd >= 0)
        close(s->bell_fd);
    if (s->pid_fd >= 0)
        close(s->pid_fd);
    if (s->space) {
        mem_backend_remove(&d->memory, s->space);
        client_mem_fini(s->space);
        free(s->space);
    }
    free(s->bells);
    free(s);
}

static void fill_tm_caps(const struct tm_profile *p, struct pm_open_rep *rep)
{
    rep->tm_max_num_tags = p->max_num_tags;
    rep->tm_max_ops = p->max_ops;
    rep->tm_max_sge = p->max_sge;
    rep->tm_max_rndv_hdr = p->max_rndv_hdr;
    rep->tm_owns_sq = p->owns_send_queue;
}

static void fill_reply(const struct session *s, struct control_reply *rp)
{
    struct pm_open_rep *rep = control_payload(rp, sizeof(*rep));

    device_describe(s->device, &rep->desc);
    rep->session = s->number;
    rep->memory_path = s->space->path;
    rep->max_mr_size = UINT64_MAX;
    rep->max_msg_size = DEVICE_MAX_MSG;
    rep->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                            IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
                            IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS;
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
    rep->hca_core_clock_khz = 1000000; /* timestamps are nanoseconds */
    rep->ack_delay = 15;
    fill_tm_caps(tm_profile(s->device->settings->tm_profile), rep);
    snprintf(rep->fw_ver, sizeof(rep->fw_ver), "%s", PUMICE_VERSION);
}

int session_open(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq, int mem_fd,
                 struct control_reply *rp, struct session **out)
{
    struct session *s = calloc(1, sizeof(*s));
    int rc, bell;

    if (!s) {
        if (mem_fd >= 0)
            close(mem_fd);
        return rp->status = control_fail(rp, -ENOMEM, "the daemon is out of memory");
    }
    s->device = d;
    s->cred = *cred;
    s->sock = sock;
    s->bell_fd = s->page_segment.fd = -1;
    s->pid_fd = open_pid_fd(sock, cred->pid);
    TAILQ_INIT(&s->targets);
    s->channels.limit = DEVICE_MAX_CHANNELS;
    s->cqs.limit = DEVICE_MAX_CQ;
    s->srqs.limit = DEVICE_MAX_SRQ;
    rc = acquire(s, rq, mem_fd);
    bell = rc ? -1 : fcntl(s->bell_fd, F_DUPFD_CLOEXEC, 0);
    if (rc || bell < 0) {
        rc = rc ? rc : -errno;
        release(s);
        return rp->status = control_fail(rp, rc, "the daemon can't take another client: %s", strerror(-rc));
    }
    s->number = ++d->next_session;
    read_comm(s);
    TAILQ_INSERT_TAIL(&d->sessions, s, link);
    d->num_sessions++;
    start_watchers(s);
    rp->status = 0;
    fill_reply(s, rp);
    control_attach(rp, segment_take_fd(&s->page_segment));
    control_attach(rp, bell);
    control_attach(rp, event_pipe_take_read_fd(&s->async));
    log_info("session %u on %s: %s, pid %d, uid %u, memory by %s", s->number, d->name, s->comm, (int)cred->pid,
             cred->uid, client_mem_path_name(s->space->path));
    if (s->space->path == PM_MEMORY_NONE)
        log_warn("session %u (%s, pid %d): its memory can't be reached, so it can't register any", s->number, s->comm,
                 (int)cred->pid);
    *out = s;
    return 0;
}

/* --- closing
 * ----------------------------------------------------------------------------------------------------------- */

/* Why nothing dangles. This runs from the event loop, between passes: no packet batch, no completion and no deferred
 * write that mentions one of the objects is under way. First the watchers stop, so that nothing calls in any more. Then
 * the queue pairs go, and the shared receive queues that they used, which removes their completions from the engine,
 * themselves from the device's lists, and with them all pointers to completion queues; then those, and with them all
 * pointers to channels; then the keys, which are the last to name the address space. XRC targets that the session had
 * open live on without it: they have no pointer to a session, and what their domain's SRQs give them went before. */
void session_close(struct session *s)
{
    struct device *d = s->device;
    void *o;

    ev_io_stop(d->loop, &s->sock_readable);
    ev_io_stop(d->loop, &s->died);
    ev_io_stop(d->loop, &s->bell);
    while ((o = handles_any(&s->qps)) != NULL)
        client_qp_free(o);
    while ((o = TAILQ_FIRST(&s->targets)) != NULL)
        target_open_free(o);
    while ((o = handles_any(&s->srqs)) != NULL)
        client_srq_free(o);
    while ((o = handles_any(&s->cqs)) != NULL)
        cq_free(o);
    while ((o = handles_any(&s->channels)) != NULL)
        channel_free(o);
    while ((o = handles_any(&s->xrcds)) != NULL)
        xrcd_open_free(o);
    while ((o = handles_any(&s->mws)) != NULL)
        mw_free(s, o);
    while ((o = handles_any(&s->mrs)) != NULL) {
        mr_deregister(d->engine, ((struct mr *)o)->key);
        mr_free(s, o);
    }
    while ((o = handles_any(&s->pds)) != NULL)
        pd_free(o);
    TAILQ_REMOVE(&d->sessions, s, link);
    d->num_sessions--;
    log_info("session %u (%s, pid %d) ended", s->number, s->comm, (int)s->cred.pid);
    if (s->sock >= 0)
        close(s->sock);
    release(s);
}

/* --- doorbells
 * --------------------------------------------------------------------------------------------------------- */

/* Room for one more at the end: most sessions need few of so many. */
static bool more_bells(struct session *s)
{
    uint32_t cap = s->bells_cap ? 2 * s->bells_cap : 64;
    struct bell *more;

    if (s->bells_end < s->bells_cap)
        return true;
    if (cap > PM_DOORBELLS)
        cap = PM_DOORBELLS;
    more = cap > s->bells_cap ? realloc(s->bells, cap * sizeof(*more)) : NULL;
    if (!more)
        return false;
    memset(more + s->bells_cap, 0, (cap - s->bells_cap) * sizeof(*more));
    s->bells = more;
    s->bells_cap = cap;
    return true;
}

int session_take_bell(struct session *s, void (*rang)(void *owner, uint64_t now), void *owner)
{
    uint32_t i = 0;

    while (i < s->bells_end && s->bells[i].rang)
        i++;
    if (i == s->bells_end && !more_bells(s))
        return -ENOSPC;
    s->bells[i] = (struct bell){rang, owner};
    if (i == s->bells_end)
        s->bells_end++;
    return (int)i;
}

void session_drop_bell(struct session *s, uint32_t bell)
{
    s->bells[bell] = (struct bell){NULL, NULL};
    while (s->bells_end && !s->bells[s->bells_end - 1].rang)
        s->bells_end--;
}

static unsigned scan_word(struct session *s, unsigned word, uint64_t now)
{
    uint64_t bits = atomic_exchange(&s->page->bits[word], 0);
    unsigned n = 0;

    while (bits) {
        unsigned d = word * 64 + (unsigned)__builtin_ctzll(bits);

        bits &= bits - 1;
        n++;
        if (d < s->bells_end && s->bells[d].rang)
            s->bells[d].rang(s->bells[d].owner, now);
    }
    return n;
}

unsigned session_scan(struct session *s, uint64_t now)
{
    unsigned n = 0;

    for (unsigned i = 0; i * 64 * 64 < s->bells_end; i++) {
        uint64_t words;

        if (atomic_load_explicit(&s->page->summary[i], memory_order_relaxed) == 0)
            continue;
        /* Summary first, then the words, then the tails, each sequentially consistent: the client stores in the
         * opposite order, so what was missed here sets the summary again. */
        words = atomic_exchange(&s->page->summary[i], 0);
        for (; words; words &= words - 1)
            n += scan_word(s, i * 64 + (unsigned)__builtin_ctzll(words), now);
    }
    return n;
}

bool session_rings(const struct session *s)
{
    for (unsigned i = 0; i * 64 * 64 < s->bells_end; i++) {
        if (atomic_load(&s->page->summary[i]) != 0)
            return true;
    }
    return false;
}

void session_set_sleeping(struct session *s, bool sleeping)
{
    /* Sequentially consistent: pairs with the client's load of it after it has set its doorbell. So either the client
     * sees that the loop sleeps, or the loop's last look sees the doorbell. */
    atomic_store(&s->page->sleeping, sleeping);
}

void session_event(struct session *s, uint32_t type, uint32_t handle)
{
    if (!event_pipe_push(&s->async, type, handle))
        s->device->io.events_lost++;
}

void session_forget(struct session *s, const uint8_t *types, unsigned num, uint32_t handle, unsigned sharers)
{
    struct evrecord kind[EVPIPE_KINDS_MAX];

    for (unsigned i = 0; i < num; i++)
        kind[i] = (struct evrecord){types[i], handle};
    s->device->io.events_lost += event_pipe_forget(&s->async, kind, num, sharers);
}
