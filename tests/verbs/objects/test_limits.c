// SPDX-License-Identifier: BSD-2-Clause
/* The limits that the device reports are real. A program can create so many objects, and the last of them work. One
 * more fails with a clear error and disturbs nothing. All can be destroyed again. */
#include "tests/verbs/vt.h"

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_device_attr limits;

static void *make_pd(void)
{
    return ibv_alloc_pd(vt_ctx);
}
static int drop_pd(void *o)
{
    return ibv_dealloc_pd(o);
}
static void *make_cq(void)
{
    return ibv_create_cq(vt_ctx, 1, NULL, NULL, 0);
}
static int drop_cq(void *o)
{
    return ibv_destroy_cq(o);
}
static char memory[4096];
static void *make_mr(void)
{
    return ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
}
static int drop_mr(void *o)
{
    return ibv_dereg_mr(o);
}
static void *make_mw(void)
{
    return ibv_alloc_mw(pd, IBV_MW_TYPE_1);
}
static int drop_mw(void *o)
{
    return ibv_dealloc_mw(o);
}
static void *make_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
    return ibv_create_srq(pd, &init);
}
static int drop_srq(void *o)
{
    return ibv_destroy_srq(o);
}
static void *make_qp(void)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    return ibv_create_qp(pd, &init);
}
static int drop_qp(void *o)
{
    return ibv_destroy_qp(o);
}

#define MOST_TRIED 8000u /* a device with a higher limit makes so many */

/* As many as there can be, less those that exist already; then one too many. Pumice's limits are all tried. */
static void reach(const char *what, unsigned limit, unsigned present, void *(*make)(void), int (*drop)(void *),
                  void (*use)(void *, void *))
{
    char text[128];
    if (limit == 0) {
        printf("# skipped: %s: the device has none\n", what);
        return;
    }
    bool all = vt_is_pumice() || limit <= MOST_TRIED;
    if (!all) {
        printf("# skipped: the limit of %s: %u of %u are made\n", what, MOST_TRIED, limit);
        limit = MOST_TRIED;
    }
    void **object = calloc(limit, sizeof(*object));
    unsigned n = 0;

    need(object && limit > present);
    while (n < limit - present && (object[n] = make()) != NULL)
        n++;
    snprintf(text, sizeof(text), "%u %s, the %uth with errno %d", n, what, n + 1, errno);
    ok(n == limit - present, text);
    errno = 0;
    void *more = n == limit - present && all ? make() : NULL;
    snprintf(text, sizeof(text), "one more fails with ENOMEM: %s", what);
    if (all)
        ok(more == NULL && (errno == ENOMEM || !vt_is_pumice()), text);
    if (use && n >= 2)
        use(object[n - 2], object[n - 1]);
    bool gone = true;
    while (n > 0)
        gone &= drop(object[--n]) == 0;
    snprintf(text, sizeof(text), "all are gone: %s", what);
    ok(gone, text);
    free(object);
}

/* The last two queue pairs talk to each other. */
static void use_qps(void *a, void *b)
{
    struct ibv_qp *qp[2] = {a, b};
    struct ibv_mr *mr = make_mr();
    struct ibv_sge sge = {(uintptr_t)memory, 100, mr ? mr->lkey : 0};
    struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *rbad;
    struct ibv_send_wr swr = {.wr_id = 2,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_SEND,
                              .send_flags = IBV_SEND_SIGNALED},
                       *sbad;
    struct ibv_wc wc;
    int done = 0;

    need(mr);
    for (int i = 0; i < 2; i++)
        need(vt_to_init(qp[i]) == 0);
    for (int i = 0; i < 2; i++)
        need(vt_to_rtr(qp[i], qp[!i]->qp_num) == 0);
    for (int i = 0; i < 2; i++)
        need(vt_to_rts(qp[i]) == 0);
    need(ibv_post_recv(qp[1], &rwr, &rbad) == 0 && ibv_post_send(qp[0], &swr, &sbad) == 0);
    for (double end = vt_now() + 10; done < 2 && vt_now() < end;)
        if (ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS)
            done++;
    ok(done == 2, "the last two queue pairs carry a message");
    ibv_dereg_mr(mr);
}

/* A queue takes as many requests as the device says, and not one more. */
static void deep_queues(void)
{
    unsigned depth = (unsigned)limits.max_qp_wr, n = 0;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_recv_wr wr = {0}, *bad;
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    need(qp && vt_to_init(qp) == 0);
    while (ibv_post_recv(qp, &wr, &bad) == 0 && n <= init.cap.max_recv_wr)
        n++;
    ok(init.cap.max_recv_wr >= depth && (vt_is_pumice() ? n == depth : n >= init.cap.max_recv_wr),
       "a queue takes max_qp_wr requests");
    ok_pumice(ibv_post_recv(qp, &wr, &bad) == ENOMEM && bad == &wr, "and one more is refused with ENOMEM");
    ok(ibv_destroy_qp(qp) == 0, "it is destroyed");
    init.cap.max_send_wr = depth + 1;
    ok(vt_none(ibv_create_qp(pd, &init), EINVAL), "a deeper one is refused with EINVAL");
}

/* … and of sends, all at once: they complete in order, and each receive request gets its message. */
static void deep_sends(void)
{
    unsigned depth = (unsigned)limits.max_qp_wr, sent = 0, done[2] = {0, 0};
    if (2 * depth > (unsigned)limits.max_cqe)
        depth = (unsigned)limits.max_cqe / 2;
    struct ibv_cq *wide = ibv_create_cq(vt_ctx, (int)(2 * depth), NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .send_cq = wide,
        .recv_cq = wide,
        .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp[2] = {NULL, NULL};
    struct ibv_mr *mr = make_mr();
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr ? mr->lkey : 0};
    struct ibv_recv_wr rwr = {.sg_list = &sge, .num_sge = 1}, *rbad;
    struct ibv_send_wr swr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *sbad;
    bool right = true;

    need(wide && mr);
    for (int i = 0; i < 2; i++)
        need((qp[i] = ibv_create_qp(pd, &init)) && vt_to_init(qp[i]) == 0);
    for (unsigned i = 0; i < depth; i++) {
        rwr.wr_id = i;
        need(ibv_post_recv(qp[1], &rwr, &rbad) == 0);
    }
    need(vt_to_rtr(qp[0], qp[1]->qp_num) == 0 && vt_to_rtr(qp[1], qp[0]->qp_num) == 0 && vt_to_rts(qp[0]) == 0);
    do
        swr.wr_id = sent;
    while (ibv_post_send(qp[0], &swr, &sbad) == 0 && ++sent < depth + vt_is_pumice());
    ok(sent == depth, "a queue takes max_qp_wr sends, none of them polled");
    for (double end = vt_now() + 60; done[0] + done[1] < 2 * depth && vt_now() < end;) {
        struct ibv_wc wc[32];
        int n = ibv_poll_cq(wide, 32, wc);
        for (int i = 0; i < n; i++)
            right &= wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == done[wc[i].opcode == IBV_WC_RECV]++;
    }
    ok(right && done[0] == depth && done[1] == depth, "all of them complete, in order");
    need(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0 && ibv_dereg_mr(mr) == 0 &&
         ibv_destroy_cq(wide) == 0);
}

static void begin(void)
{
    need(ibv_query_device(vt_ctx, &limits) == 0);
    pd = ibv_alloc_pd(vt_ctx);
    cq = ibv_create_cq(vt_ctx, 64, NULL, NULL, 0);
    need(pd && cq);
}
static void end(void)
{
    ok(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "nothing is left");
}

static void objects(void)
{
    begin();
    ok_pumice(limits.max_qp >= 4096 && limits.max_mr >= 65536 && limits.max_qp_wr >= 16384,
              "the device promises enough");
    reach("protection domains", (unsigned)limits.max_pd, 1, make_pd, drop_pd, NULL);
    reach("memory regions", (unsigned)limits.max_mr, 0, make_mr, drop_mr, NULL);
    reach("memory windows", vt_lacks(vt_ctx, VT_MW) ? 0 : (unsigned)limits.max_mw, 0, make_mw, drop_mw, NULL);
    reach("completion queues", (unsigned)limits.max_cq, 1, make_cq, drop_cq, NULL);
    reach("shared receive queues", (unsigned)limits.max_srq, 0, make_srq, drop_srq, NULL);
    reach("queue pairs", (unsigned)limits.max_qp, 0, make_qp, drop_qp, use_qps);
    end();
}

static void queues(void)
{
    begin();
    deep_queues();
    deep_sends();
    end();
}

int main(void)
{
    vt_part("objects", objects);
    vt_part("queues", queues);
    return vt_failed;
}
