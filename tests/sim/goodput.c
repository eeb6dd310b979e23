// SPDX-License-Identifier: BSD-2-Clause
/* Measures the speed of one connection, in virtual time, when packets are lost or late. The result is reported, never
 * asserted. It rates the loss recovery, and says nothing about the processor time of a real daemon. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/bare.h"

#define LINK_RATE 4000u /* bytes per us, in each direction */
#define ONE_WAY (15 * US)
#define MESSAGE 65536u
#define MTU_CODE 5 /* 4096 */
#define TOTAL (64u << 20) /* bytes of one stream */
#define DEPTH 64 /* number of requests posted at once */
#define SEEDS 4

struct side {
    struct engine_config cfg;
    void *mem, *qpmem;
    struct engine *e;
    struct qp *qp;
    uint32_t key;
    bool touched;
};
struct stream {
    struct side side[2]; /* side 0 posts the requests */
    struct evq events;
    struct net net;
    uint64_t now;
    uint8_t opcode; /* enum send_op */
    uint32_t posted, done, failed, total; /* numbers of requests */
};

/* --- two engines, connected -------------------------------------------------------------------- */

static void make_side(struct side *s, int number, bool selective)
{
    static const struct owner_ops owner = {0};
    struct qp_init init = {
        .type = QPT_RC, .pd = 1, .caps = {DEPTH, 1, 1, 1, 0}, .send_cq = s, .recv_cq = s, .owner = s};
    struct mr_init mr = {.pd = 1,
                         .va = 1 << 20,
                         .iova = 1 << 20,
                         .length = MESSAGE,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ};
    engine_config_defaults(&s->cfg);
    s->cfg.max_qp = s->cfg.max_mr = s->cfg.max_peers = 1;
    s->cfg.num_gids = 1;
    s->cfg.selective = selective;
    bare_gid(number, s->cfg.gids[0]);
    s->mem = bare_zeroed(engine_size(&s->cfg));
    s->e = engine_init(s->mem, &s->cfg, &bare_mem_ops, NULL, &owner, NULL);
    s->qpmem = bare_zeroed(qp_size(&init));
    if (!s->e || qp_create(s->e, &init, s->qpmem, &s->qp) != 0 || mr_register(s->e, &mr, &s->key) != 0)
        abort();
}

/* --- running ----------------------------------------------------------------------------------- */

static void post(struct stream *s)
{
    const struct side *from = &s->side[0];
    struct sge sge = {1 << 20, MESSAGE, from->key};
    struct send_wr wr = {
        .opcode = s->opcode, .flags = SEND_SIGNALED, .num_sge = 1, .remote_addr = 1 << 20, .rkey = s->side[1].key};
    while (s->posted < s->total && qp_post_send(from->qp, &wr, &sge, NULL) == 0)
        s->posted++;
}

static void receive(struct stream *s, struct wirepkt *p)
{
    struct side *to = &s->side[p->dst];
    bare_receive(to->e, p, &s->net, s->now);
    to->touched = true;
}

static void serve(struct stream *s, int i)
{
    struct side *h = &s->side[i];
    const struct completion *c;
    engine_expire(h->e, s->now);
    if (i == 0)
        post(s);
    bare_transmit(h->e, i, &s->net, s->now);
    while ((c = engine_peek_completion(h->e)) != NULL) {
        s->done++;
        s->failed += c->status != WC_SUCCESS;
        engine_drop_completion(h->e);
    }
    if (i == 0 && s->posted < s->total) {
        post(s);
        bare_transmit(h->e, i, &s->net, s->now);
    }
}

static uint64_t earliest(const struct stream *s)
{
    uint64_t t = evq_next(&s->events);
    for (int i = 0; i < 2; i++) {
        uint64_t d = engine_deadline(s->side[i].e);
        t = d < t ? d : t;
    }
    return t;
}

/* Returns the duration in ns; 0 if the stream failed. */
static uint64_t run_stream(struct stream *s)
{
    serve(s, 0);
    while (s->done < s->total && earliest(s) != NEVER) {
        struct timed ev;
        uint64_t t = earliest(s);
        s->now = t > s->now ? t : s->now;
        while (evq_pop(&s->events, s->now, &ev))
            receive(s, ev.p);
        for (int i = 0; i < 2; i++) {
            if (s->side[i].touched || engine_deadline(s->side[i].e) <= s->now) {
                s->side[i].touched = false;
                serve(s, i);
            }
        }
    }
    return s->failed || s->done < s->total ? 0 : s->now;
}

struct trouble {
    uint32_t loss, reorder; /* parts of the packets that are lost, and late, per mille */
    uint32_t late_us;
};

static uint64_t measure(uint8_t opcode, bool selective, const struct trouble *t, uint64_t seed,
                        struct engine_counters *counters)
{
    static struct stream s;
    struct net_faults faults = {.loss = t->loss,
                                .reorder = t->reorder,
                                .reorder_ns = t->late_us * US,
                                .delay_ns = ONE_WAY,
                                .rate = LINK_RATE * 1000};
    static const struct qp_attr attr = {.port = 1,
                                        .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
                                        .path_mtu = MTU_CODE,
                                        .timeout = 14,
                                        .retry_cnt = 7,
                                        .rnr_retry = 7,
                                        .max_rd_atomic = 16,
                                        .max_dest_rd_atomic = 16};
    struct timed ev;
    memset(&s, 0, sizeof s);
    s.opcode = opcode;
    s.total = TOTAL / MESSAGE;
    net_init(&s.net, &s.events, &faults, seed);
    for (int i = 0; i < 2; i++)
        make_side(&s.side[i], i, selective);
    for (int i = 0; i < 2; i++)
        bare_connect(s.side[i].qp, s.side[1 - i].qp, 1 - i, &attr);
    uint64_t ns = run_stream(&s);
    *counters = *engine_counters(s.side[0].e);
    while (evq_pop(&s.events, UINT64_MAX, &ev))
        free(ev.p);
    free(s.events.heap);
    net_free(&s.net);
    for (int i = 0; i < 2; i++) {
        free(s.side[i].mem);
        free(s.side[i].qpmem);
    }
    return ns;
}

static void name_trouble(const struct trouble *t, char text[32])
{
    if (t->reorder)
        snprintf(text, 32, "%.0f %% lost, %.0f %% late %u us", t->loss / 10.0, t->reorder / 10.0, t->late_us);
    else
        snprintf(text, 32, "%.1f %% lost", t->loss / 10.0);
}

static void report_row(const char *name, uint8_t opcode, bool selective, const struct trouble *trouble, double *calm)
{
    struct engine_counters c = {0};
    uint64_t ns = 0, failed = 0;
    char text[32];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t t = measure(opcode, selective, trouble, seed, &c);
        failed += t == 0;
        ns += t;
    }
    double rate = failed ? 0 : (double)TOTAL * SEEDS * 1000 / (double)ns;
    *calm = *calm > 0 ? *calm : rate;
    name_trouble(trouble, text);
    printf("%-6s %-10s %-28s %8.0f %8.2f %10llu %7llu %9llu %9llu %7llu %9llu\n", name,
           selective ? "selective" : "go-back-N", text, rate, *calm > 0 ? rate / *calm : 0,
           (unsigned long long)c.sent_pkts, (unsigned long long)(c.fast_retrans - c.selective_retrans),
           (unsigned long long)c.selective_retrans, (unsigned long long)c.selective_unneeded,
           (unsigned long long)c.probe_retrans, (unsigned long long)c.timeout_retrans);
}

void goodput_report(void)
{
    static const struct trouble troubles[] = {{0},         {.loss = 1},  {.loss = 10}, {.loss = 50},
                                              {0, 50, 20}, {0, 50, 100}, {10, 50, 50}};
    static const struct {
        uint8_t opcode;
        const char *name;
    } kinds[] = {{WR_RDMA_WRITE, "WRITE"}, {WR_RDMA_READ, "READ"}};
    printf("%u KiB messages, MTU 4096, RTT %u us, links of %u MB/s; mean of %d seeds\n", MESSAGE / 1024,
           2 * ONE_WAY / US, LINK_RATE, SEEDS);
    printf("%-46s %8s %8s %10s %7s %9s %9s %7s %9s\n", "", "MB/s", "of calm", "pkts sent", "fast", "selective",
           "unneeded", "probe", "timeout");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int selective = 0; selective < 2; selective++) {
            double calm = 0;
            for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
                report_row(kinds[k].name, kinds[k].opcode, selective, &troubles[i], &calm);
        }
    }
}
