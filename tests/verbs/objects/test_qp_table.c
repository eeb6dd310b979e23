// SPDX-License-Identifier: BSD-2-Clause
/* The states of queue pairs, by the table of the specification (IBA 11.2.4.2): which state can follow which, which attributes each change
 * needs, and which it allows. Every pair of states is tried, and every attribute with each change. A change that fails changes nothing.
 * ibv_query_qp returns what was set. */
#include <fcntl.h>

#include "tests/verbs/ends.h"

enum type { RC, UC, UD, XRC_SEND, XRC_RECV, TYPES };
static const enum ibv_qp_type qp_type[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
static const char *const type_name[] = {"RC", "UC", "UD", "XRC initiator", "XRC target"};
static const char *const state_name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

#define INIT_SET (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define PATH_SET (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRY_SET (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

/* Attributes that a change may have beside those that it needs. Not here: alternate paths, migration, and a new size of the queues, which
 * devices need not offer. */
struct change {
    enum ibv_qp_state from, to;
    struct {
        int needs, allows;
    } of[TYPES];
};
static const struct change changes[] = {
    {IBV_QPS_RESET,
     IBV_QPS_INIT,
     {{INIT_SET, 0}, {INIT_SET, 0}, {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0}, {INIT_SET, 0}, {INIT_SET, 0}}},
    {IBV_QPS_INIT,
     IBV_QPS_INIT,
     {{0, INIT_SET}, {0, INIT_SET}, {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY}, {0, INIT_SET}, {0, INIT_SET}}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {{PATH_SET | RESPONDER, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {PATH_SET, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {PATH_SET, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {PATH_SET | RESPONDER, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX}}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {{RETRY_SET | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
       IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
      {IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
      {RETRY_SET | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER}}},
    {IBV_QPS_RTS,
     IBV_QPS_RTS,
     {{0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
      {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
      {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER}}},
    {IBV_QPS_RTS,
     IBV_QPS_SQD,
     {{0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}}},
    {IBV_QPS_SQD,
     IBV_QPS_RTS,
     {{0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
      {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
      {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER}}},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     {{0, INIT_SET | IBV_QP_AV | RETRY_SET | IBV_QP_MAX_QP_RD_ATOMIC | RESPONDER},
      {0, INIT_SET | IBV_QP_AV},
      {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {0, INIT_SET | IBV_QP_AV | RETRY_SET | IBV_QP_MAX_QP_RD_ATOMIC},
      {0, INIT_SET | IBV_QP_AV | IBV_QP_TIMEOUT | RESPONDER}}},
};
static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                           IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
#define STATES (sizeof(states) / sizeof(states[0]))
/* Each attribute of the table. */
static const int attributes[] = {IBV_QP_CUR_STATE,
                                 IBV_QP_EN_SQD_ASYNC_NOTIFY,
                                 IBV_QP_ACCESS_FLAGS,
                                 IBV_QP_PKEY_INDEX,
                                 IBV_QP_PORT,
                                 IBV_QP_QKEY,
                                 IBV_QP_AV,
                                 IBV_QP_PATH_MTU,
                                 IBV_QP_TIMEOUT,
                                 IBV_QP_RETRY_CNT,
                                 IBV_QP_RNR_RETRY,
                                 IBV_QP_RQ_PSN,
                                 IBV_QP_MAX_QP_RD_ATOMIC,
                                 IBV_QP_MIN_RNR_TIMER,
                                 IBV_QP_SQ_PSN,
                                 IBV_QP_MAX_DEST_RD_ATOMIC,
                                 IBV_QP_DEST_QPN};
#define ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

static struct vt_end e;
static struct ibv_xrcd *domain;
static unsigned tried;

static const struct change *find(enum ibv_qp_state from, enum ibv_qp_state to)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        if (changes[i].from == from && changes[i].to == to)
            return &changes[i];
    return NULL;
}

/* Attributes of the half that an XRC QP lacks: devices may ignore or refuse them. */
static int either_way(enum type t)
{
    return t == XRC_SEND   ? RESPONDER
           : t == XRC_RECV ? IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                           : 0;
}

static struct ibv_qp *make(enum type t)
{
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    struct ibv_qp *qp = t == XRC_RECV ? ibv_create_qp_ex(e.ctx, &target) : vt_end_qp(&e, qp_type[t], NULL, 0);
    need(qp);
    return qp;
}

/* Values for all attributes, which no state has from the beginning. */
static struct ibv_qp_attr values(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    struct ibv_qp_attr a;
    vt_rtr_attr(qp, 0x123, NULL, &a);
    a.qp_state = to;
    a.cur_qp_state = from;
    a.qp_access_flags =
        qp->qp_type == IBV_QPT_UC ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    a.port_num = vt_port();
    a.qkey = 0x1234;
    a.rq_psn = 0xabcdef;
    a.sq_psn = 0xfedcba;
    a.timeout = 15;
    a.retry_cnt = 5;
    a.rnr_retry = 4;
    a.min_rnr_timer = 21;
    a.max_rd_atomic = a.max_dest_rd_atomic = 2;
    return a;
}

static int change(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    struct ibv_qp_attr a = values(qp, from, to);
    tried++;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE | mask);
}

static void advance(struct ibv_qp *qp, enum type t, enum ibv_qp_state to)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
    need(vt_to_state(qp, IBV_QPS_RESET) == 0);
    if (to == IBV_QPS_ERR)
        need(vt_to_state(qp, to) == 0);
    else
        for (unsigned i = 0; way[i] != to; i++)
            need(change(qp, way[i], way[i + 1], find(way[i], way[i + 1])->of[t].needs) == 0);
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    memset(&a, 0, sizeof(a));
    need(ibv_query_qp(qp, &a, 0x1fffff, &init) == 0);
    return a;
}

static bool same(const struct ibv_qp_attr *a, const struct ibv_qp_attr *b)
{
    return a->qp_state == b->qp_state && a->path_mtu == b->path_mtu && a->qkey == b->qkey && a->rq_psn == b->rq_psn &&
           a->sq_psn == b->sq_psn && a->dest_qp_num == b->dest_qp_num && a->qp_access_flags == b->qp_access_flags &&
           a->pkey_index == b->pkey_index && a->max_rd_atomic == b->max_rd_atomic &&
           a->max_dest_rd_atomic == b->max_dest_rd_atomic && a->min_rnr_timer == b->min_rnr_timer &&
           a->port_num == b->port_num && a->timeout == b->timeout && a->retry_cnt == b->retry_cnt &&
           a->rnr_retry == b->rnr_retry && !memcmp(&a->ah_attr.grh.dgid, &b->ah_attr.grh.dgid, 16);
}

/* The change fails with EINVAL, and the QP stays as it was. */
static bool refused(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    struct ibv_qp_attr before = query(qp);
    int rc = change(qp, from, to, mask);
    struct ibv_qp_attr after = query(qp);
    if (vt_fails(rc, EINVAL) && same(&before, &after) && qp->state == from)
        return true;
    printf("# %s to %s with attributes 0x%x: result %d, state %s\n", state_name[from], state_name[to], (unsigned)mask,
           rc, state_name[after.qp_state]);
    return false;
}

static bool accepted(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    int rc = change(qp, from, to, mask);
    if (rc == 0 && query(qp).qp_state == to && qp->state == to)
        return true;
    printf("# %s to %s with attributes 0x%x: result %d\n", state_name[from], state_name[to], (unsigned)mask, rc);
    return false;
}

/* Changes that are not in the table fail, with any attributes that could belong to them. */
static void pairs(enum type t)
{
    char what[100];
    struct ibv_qp *qp = make(t);
    bool right = true;
    for (size_t i = 0; i < STATES; i++) {
        for (size_t k = 0; k < STATES; k++) {
            enum ibv_qp_state from = states[i], to = states[k];
            advance(qp, t, from);
            if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
                right &= accepted(qp, from, to, 0);
                continue;
            }
            if (find(from, to))
                continue;
            for (size_t n = 0; n < sizeof(changes) / sizeof(changes[0]); n++)
                if (changes[n].to == to)
                    right &= refused(qp, from, to, changes[n].of[t].needs);
        }
    }
    snprintf(what, sizeof(what), "%s: no change of state but those of the table", type_name[t]);
    ok(right, what);
    need(ibv_destroy_qp(qp) == 0);
}

static void masks(enum type t, const struct change *c)
{
    char what[100];
    struct ibv_qp *qp = make(t);
    int needs = c->of[t].needs, allows = c->of[t].allows;
    bool missing = true, more = true, fits = true;
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        int one = attributes[i];
        advance(qp, t, c->from);
        if (needs & one) {
            missing &= refused(qp, c->from, c->to, needs & ~one);
        } else if (allows & one) {
            fits &= accepted(qp, c->from, c->to, needs | one);
        } else if (!(either_way(t) & one)) {
            more &= refused(qp, c->from, c->to, needs | one);
        }
    }
    advance(qp, t, c->from);
    fits &= accepted(qp, c->from, c->to, needs);
    advance(qp, t, c->from);
    fits &= accepted(qp, c->from, c->to, needs | allows);
    snprintf(what, sizeof(what), "%s, %s to %s: each attribute that it needs, each that it allows, and no other",
             type_name[t], state_name[c->from], state_name[c->to]);
    ok(missing && more && fits, what);
    need(ibv_destroy_qp(qp) == 0);
}

/* ibv_query_qp returns the attributes that ibv_modify_qp has set. */
static void queried(enum type t)
{
    char what[100];
    struct ibv_qp *qp = make(t);
    struct ibv_qp_attr set = values(qp, IBV_QPS_RTR, IBV_QPS_RTS), got;
    bool connected = t != UD, requester = t == RC || t == XRC_SEND, responder = t == RC || t == XRC_RECV;
    advance(qp, t, IBV_QPS_RTS);
    got = query(qp);
    bool right =
        got.qp_state == IBV_QPS_RTS && got.port_num == set.port_num && got.pkey_index == 0 && got.sq_psn == set.sq_psn;
    if (connected)
        right &= got.qp_access_flags == set.qp_access_flags && got.path_mtu == set.path_mtu &&
                 got.dest_qp_num == set.dest_qp_num && got.rq_psn == set.rq_psn &&
                 !memcmp(&got.ah_attr.grh.dgid, &set.ah_attr.grh.dgid, 16) &&
                 got.ah_attr.grh.sgid_index == set.ah_attr.grh.sgid_index;
    else
        right &= got.qkey == set.qkey;
    if (requester)
        right &= got.timeout == set.timeout && got.retry_cnt == set.retry_cnt && got.rnr_retry == set.rnr_retry &&
                 got.max_rd_atomic == set.max_rd_atomic;
    if (responder)
        right &= got.min_rnr_timer == set.min_rnr_timer && got.max_dest_rd_atomic == set.max_dest_rd_atomic;
    snprintf(what, sizeof(what), "%s: ibv_query_qp returns what was set", type_name[t]);
    ok(right, what);
    need(ibv_destroy_qp(qp) == 0);
}

/* cur_qp_state says in which state the caller believes the QP to be. */
static void current(void)
{
    struct ibv_qp *qp = make(RC);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};
    advance(qp, RC, IBV_QPS_RTS);
    ok(vt_fails(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL) && query(qp).qp_state == IBV_QPS_RTS,
       "a wrong cur_qp_state: EINVAL");
    a.cur_qp_state = IBV_QPS_RTS;
    ok(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0, "the right one");
    need(ibv_destroy_qp(qp) == 0);
}

/* Values that are out of range fail, and change nothing else of the same call. */
static void bounds(void)
{
    static const struct {
        const char *what;
        int mask;
        struct ibv_qp_attr a;
    } wrong[] = {{"timeout 32", IBV_QP_TIMEOUT, {.timeout = 32}},
                 {"retry_cnt 8", IBV_QP_RETRY_CNT, {.retry_cnt = 8}},
                 {"rnr_retry 8", IBV_QP_RNR_RETRY, {.rnr_retry = 8}},
                 {"min_rnr_timer 32", IBV_QP_MIN_RNR_TIMER, {.min_rnr_timer = 32}},
                 {"pkey_index 999", IBV_QP_PKEY_INDEX, {.pkey_index = 999}},
                 {"port_num 99", IBV_QP_PORT, {.port_num = 99}},
                 {"max_rd_atomic 255", IBV_QP_MAX_QP_RD_ATOMIC, {.max_rd_atomic = 255}},
                 {"max_dest_rd_atomic 255", IBV_QP_MAX_DEST_RD_ATOMIC, {.max_dest_rd_atomic = 255}}};
    struct ibv_qp *qp = make(RC);
    advance(qp, RC, IBV_QPS_SQD);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ibv_qp_attr before = query(qp), a = wrong[i].a, after;
        char what[100];
        a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        snprintf(what, sizeof(what), "%s: EINVAL, and the access flags beside it do not change", wrong[i].what);
        int rc = ibv_modify_qp(qp, &a, wrong[i].mask | IBV_QP_ACCESS_FLAGS);
        after = query(qp);
        ok(vt_fails(rc, EINVAL) && same(&before, &after), what);
    }
    need(ibv_destroy_qp(qp) == 0);
}

int main(void)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    vt_ctx = vt_open();
    vt_needs(vt_ctx, VT_CONNECT);
    vt_end_open(&e, vt_ctx);
    domain = vt_lacks(vt_ctx, VT_XRC) ? NULL : ibv_open_xrcd(vt_ctx, &x);
    for (enum type t = RC; t < TYPES; t++) {
        if (t >= XRC_SEND && !domain) {
            printf("# skipped: %s: %s\n", type_name[t], vt_lacks(vt_ctx, VT_XRC));
            continue;
        }
        pairs(t);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
            masks(t, &changes[i]);
        queried(t);
    }
    current();
    bounds();
    printf("# %u changes tried\n", tried);
    ok((!domain || ibv_close_xrcd(domain) == 0) && vt_end_close(&e) && ibv_close_device(vt_ctx) == 0, "all is closed");
    return vt_failed;
}
