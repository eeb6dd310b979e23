// SPDX-License-Identifier: BSD-2-Clause
/* Posting work requests, and describing their completions. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/rxe/odd/odd.h"

enum { IMM_DATA = 0x12345678, QKEY = 0x11111111, WAIT_MS = 10000, QUIET_MS = 60, DATAGRAM_MS = 300 };

static const char *const status_name[] = {
    [IBV_WC_SUCCESS] = "SUCCESS",
    [IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
    [IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
    [IBV_WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
    [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
    [IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
    [IBV_WC_MW_BIND_ERR] = "MW_BIND_ERR",
    [IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
    [IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
    [IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
    [IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
    [IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
    [IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The other end may need this processor, so an empty poll is followed by a pause. */
static int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
    int n = ibv_poll_cq(cq, 1, wc);
    if (n == 0)
        usleep(100);
    return n;
}

uint32_t request_count(const struct request *r)
{
    return r->count ? r->count : 1;
}

/* --- a list of words, in which equal neighbours are counted ------------------------------------ */

struct words {
    char *text;
    size_t size, used;
    char last[64];
    uint32_t repeated;
};

static void put(struct words *w, const char *text)
{
    if (w->used + strlen(text) < w->size)
        w->used += (size_t)snprintf(w->text + w->used, w->size - w->used, "%s", text);
}

static void flush_words(struct words *w)
{
    char times[16];
    if (w->repeated > 1) {
        snprintf(times, sizeof times, " x%u", w->repeated);
        put(w, times);
    }
    w->repeated = 0;
}

static void add_word(struct words *w, const char *word)
{
    if (w->repeated && strcmp(w->last, word) == 0) {
        w->repeated++;
        return;
    }
    flush_words(w);
    if (w->used)
        put(w, ", ");
    put(w, word);
    snprintf(w->last, sizeof w->last, "%s", word);
    w->repeated = 1;
}

static const char *status_word(enum ibv_wc_status status)
{
    size_t num = sizeof status_name / sizeof *status_name;
    return (size_t)status < num && status_name[status] ? status_name[status] : "other status";
}

/* --- receive requests --------------------------------------------------------------------------- */

static uint32_t local_key(const struct end *e, enum key key)
{
    switch (key) {
    case KEY_NONE:
        return e->all->lkey ^ 0x3fff00;
    case KEY_STALE:
        return e->all->lkey ^ 0x5a;
    case KEY_OTHER_PD:
        return e->other->lkey;
    case KEY_NO_WRITE:
        return e->no_write->lkey;
    default:
        return e->all->lkey;
    }
}

void receives_post(struct end *e, const struct odd_case *c)
{
    for (uint32_t i = 0; i < c->receives; i++) {
        struct ibv_sge s = {.addr = (uintptr_t)e->block + RECEIVE + i * c->receive_bytes,
                            .length = c->receive_bytes,
                            .lkey = local_key(e, c->receive_key)};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = c->receive_bytes ? 1 : 0}, *bad;
        if (e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad))
            die("post receive request");
    }
}

/* Are the headers in front of a datagram those of a packet from the peer to this end, or to its group? With IPv4 the
 * header is in the last 20 of the 40 bytes, and the addresses are its last 8 bytes. */
static bool headers_right(const struct end *e, const struct odd_case *c, const struct ibv_wc *wc)
{
    const uint8_t *grh = e->block + RECEIVE + wc->wr_id * c->receive_bytes;
    union ibv_gid to = c->group ? end_group(e) : e->gid;
    if (!(wc->wc_flags & IBV_WC_GRH) || wc->src_qp != e->peer.qpn)
        return false;
    if (to.raw[0] == 0)
        return grh[20] == 0x45 && !memcmp(grh + 32, e->peer.gid.raw + 12, 4) && !memcmp(grh + 36, to.raw + 12, 4);
    return grh[0] >> 4 == 6 && !memcmp(grh + 8, e->peer.gid.raw, 16) && !memcmp(grh + 24, to.raw, 16);
}

static void describe_receive(const struct end *e, const struct odd_case *c, const struct ibv_wc *wc, struct words *w)
{
    char text[64];
    if (wc->status != IBV_WC_SUCCESS) {
        add_word(w, status_word(wc->status));
        return;
    }
    const char *kind = wc->opcode == IBV_WC_RECV                 ? "RECV"
                       : wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? "WRITE"
                                                                 : "other opcode";
    const char *imm = !(wc->wc_flags & IBV_WC_WITH_IMM) ? "" : ntohl(wc->imm_data) == IMM_DATA ? " imm" : " wrong-imm";
    const char *inv = "";
    if (wc->wc_flags & IBV_WC_WITH_INV)
        inv = e->mw && wc->invalidated_rkey == e->mw->rkey ? " inv" : " wrong-inv";
    const char *grh = c->type == IBV_QPT_UD && !headers_right(e, c, wc) ? " wrong-headers" : "";
    snprintf(text, sizeof text, "%s %u%s%s%s", kind, wc->byte_len, imm, inv, grh);
    add_word(w, text);
}

/* Waits for the completions that the case expects, and a little longer for others. */
void receives_run(struct end *e, const struct odd_case *c, char *text, size_t size)
{
    struct words w = {.text = text, .size = size};
    bool datagrams = c->type == IBV_QPT_UD || c->type == IBV_QPT_UC;
    int64_t end = now_ms() + (c->arrives ? (datagrams ? 2000 : 5000) : datagrams ? DATAGRAM_MS : QUIET_MS);
    struct ibv_wc wc;
    text[0] = 0;
    for (uint32_t n = 0; now_ms() < end;) {
        if (poll_one(e->recv_cq, &wc) <= 0)
            continue;
        describe_receive(e, c, &wc, &w);
        if (++n >= c->arrives)
            end = now_ms() + QUIET_MS;
    }
    flush_words(&w);
    if (w.used == 0)
        put(&w, "-");
}

/* --- windows ------------------------------------------------------------------------------------ */

static void wait_local(struct end *e, const char *what)
{
    struct ibv_wc wc;
    int64_t end = now_ms() + WAIT_MS;
    int n = 0;
    while (n == 0 && now_ms() < end)
        n = poll_one(e->send_cq, &wc);
    if (n != 1 || wc.status != IBV_WC_SUCCESS)
        die(what);
}

void window_bind(struct end *e, const struct odd_case *c)
{
    const struct window *win = &c->window;
    struct ibv_mw_bind_info info = {.mr = e->target,
                                    .addr = (uintptr_t)e->block + TARGET + win->at,
                                    .length = win->length,
                                    .mw_access_flags = win->access};
    struct ibv_send_wr *bad;
    if (win->type == IBV_MW_TYPE_1) {
        struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = info};
        if (ibv_bind_mw(e->qp, e->mw, &bind))
            die("bind memory window");
        wait_local(e, "bind memory window");
        if (win->invalidated) { /* a window of type 1 ends with a bind of length 0 */
            bind.bind_info.length = 0;
            if (ibv_bind_mw(e->qp, e->mw, &bind))
                die("unbind memory window");
            wait_local(e, "unbind memory window");
        }
        return;
    }
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {.mw = e->mw, .rkey = ibv_inc_rkey(e->mw->rkey), .bind_info = info}};
    if (ibv_post_send(e->qp, &wr, &bad))
        die("bind memory window");
    wait_local(e, "bind memory window");
    e->mw->rkey = wr.bind_mw.rkey;
    if (win->invalidated) {
        struct ibv_send_wr inv = {
            .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = e->mw->rkey};
        if (ibv_post_send(e->qp, &inv, &bad))
            die("invalidate memory window");
        wait_local(e, "invalidate memory window");
    }
}

/* --- requests ----------------------------------------------------------------------------------- */

static uint32_t remote_key(const struct end *e, enum key key)
{
    switch (key) {
    case KEY_NONE:
        return e->peer.rkey ^ 0x3fff00;
    case KEY_STALE:
        return e->peer.rkey ^ 0x5a;
    case KEY_OTHER_PD:
        return e->peer.other_rkey;
    case KEY_WINDOW:
        return e->peer.window_rkey;
    default:
        return e->peer.rkey;
    }
}

static void fill_operation(const struct end *e, const struct odd_case *c, const struct request *r, uint32_t index,
                           struct ibv_send_wr *wr)
{
    static const enum ibv_wr_opcode opcodes[] = {
        [SEND] = IBV_WR_SEND,
        [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
        [SEND_INV] = IBV_WR_SEND_WITH_INV,
        [WRITE] = IBV_WR_RDMA_WRITE,
        [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
        [READ] = IBV_WR_RDMA_READ,
        [FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
        [COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
    };
    uint64_t remote = e->peer.target + (uint64_t)(int64_t)r->remote + index * r->length;
    wr->opcode = opcodes[r->op];
    if (r->op == SEND_IMM || r->op == WRITE_IMM)
        wr->imm_data = htonl(IMM_DATA);
    if (r->op == SEND_INV)
        wr->invalidate_rkey = remote_key(e, r->rkey);
    if (r->op == WRITE || r->op == WRITE_IMM || r->op == READ) {
        wr->wr.rdma.remote_addr = remote;
        wr->wr.rdma.rkey = remote_key(e, r->rkey);
    }
    if (r->op == FETCH_ADD || r->op == COMPARE_SWAP) {
        wr->wr.atomic.remote_addr = remote;
        wr->wr.atomic.rkey = remote_key(e, r->rkey);
        wr->wr.atomic.compare_add =
            r->equal ? model_word((uint32_t)(TARGET + r->remote) + index * r->length) : r->compare_add;
        wr->wr.atomic.swap = r->swap;
    }
    if (c->type == IBV_QPT_UD) {
        wr->wr.ud.ah = e->ah;
        wr->wr.ud.remote_qpn = c->group ? 0xffffff : c->wrong_qpn ? c->wrong_qpn : e->peer.qpn;
        wr->wr.ud.remote_qkey = c->wrong_qkey ? c->wrong_qkey : QKEY;
    }
}

/* One or three SGEs that cover the local buffer. */
static int fill_sges(const struct end *e, const struct request *r, uint32_t index, struct ibv_sge *s)
{
    uint64_t at = (uintptr_t)e->block + SOURCE + r->local + index * r->length;
    uint32_t key = local_key(e, r->lkey);
    if (!r->split) {
        s[0] = (struct ibv_sge){.addr = at, .length = r->length, .lkey = key};
        return r->length ? 1 : 0;
    }
    uint32_t first = 1, second = r->length / 2;
    s[0] = (struct ibv_sge){.addr = at, .length = first, .lkey = key};
    s[1] = (struct ibv_sge){.addr = at + first, .length = second, .lkey = key};
    s[2] = (struct ibv_sge){.addr = at + first + second, .length = r->length - first - second, .lkey = key};
    return 3;
}

/* Returns the number of completions to wait for. A request that is refused when it is posted counts as a word. */
static uint32_t post_all(struct end *e, const struct odd_case *c, struct words *w)
{
    uint32_t wait = 0;
    for (const struct request *r = c->request; r < c->request + MAX_REQUESTS && r->op != NONE; r++) {
        for (uint32_t i = 0; i < request_count(r); i++) {
            struct ibv_sge s[MAX_SGE];
            struct ibv_send_wr wr = {.wr_id = (uint64_t)(r - c->request), .sg_list = s}, *bad;
            wr.num_sge = fill_sges(e, r, i, s);
            wr.send_flags = r->flags | (r->silent ? 0 : IBV_SEND_SIGNALED);
            fill_operation(e, c, r, i, &wr);
            int error = ibv_post_send(e->qp, &wr, &bad);
            if (error)
                add_word(w, error == EINVAL ? "refused when posted" : strerror(error));
            else if (!r->silent || r->fails)
                wait++;
        }
    }
    return wait;
}

void requests_run(struct end *e, const struct odd_case *c, char *text, size_t size)
{
    struct words w = {.text = text, .size = size};
    struct ibv_wc wc;
    text[0] = 0;
    uint32_t wait = post_all(e, c, &w);
    int64_t end = now_ms() + WAIT_MS;
    while (wait && now_ms() < end) {
        if (poll_one(e->send_cq, &wc) <= 0)
            continue;
        add_word(&w, status_word(wc.status));
        wait--;
    }
    for (; wait; wait--)
        add_word(&w, "no completion");
    end = now_ms() + 5;
    while (now_ms() < end)
        if (poll_one(e->send_cq, &wc) > 0)
            add_word(&w, "one too many");
    flush_words(&w);
}

/* --- states and events -------------------------------------------------------------------------- */

const char *state_name(const struct end *e)
{
    static const char *const name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"};
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    if (!e->qp)
        return "GONE";
    if (ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init))
        die("query queue pair");
    return name[a.qp_state <= IBV_QPS_ERR ? a.qp_state : IBV_QPS_ERR + 1];
}

void events_describe(struct end *e, char *text, size_t size)
{
    struct words w = {.text = text, .size = size};
    struct ibv_async_event event;
    text[0] = 0;
    while (ibv_get_async_event(e->ctx, &event) == 0) {
        enum ibv_event_type t = event.event_type;
        add_word(&w, t == IBV_EVENT_QP_ACCESS_ERR         ? "QP_ACCESS_ERR"
                     : t == IBV_EVENT_QP_REQ_ERR          ? "QP_REQ_ERR"
                     : t == IBV_EVENT_QP_FATAL            ? "QP_FATAL"
                     : t == IBV_EVENT_SRQ_LIMIT_REACHED   ? "SRQ_LIMIT_REACHED"
                     : t == IBV_EVENT_QP_LAST_WQE_REACHED ? "QP_LAST_WQE_REACHED"
                                                          : "other event");
        ibv_ack_async_event(&event);
    }
    flush_words(&w);
    if (w.used == 0)
        put(&w, "-");
}
