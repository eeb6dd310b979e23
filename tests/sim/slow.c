// SPDX-License-Identifier: BSD-2-Clause
/* Connections over paths that are slower than their senders: a link with a limited rate and a buffer of some packets,
 * which loses the packets that find the buffer full. Each cell of a matrix is one such path with some QPs that always
 * have something to send. The matrix requires of each cell:
 *
 *     goodput     the QPs get most of the path's rate
 *     waste       few packets arrive at the receiver that it already has or can't use yet. Packets that the path lost
 *                 do not count.
 *     no errors   no QP fails
 *     fairness    two senders with different settings on one path get similar shares */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/bare.h"

#define DEPTH 16 /* requests that each QP always has posted */
#define MAX_PAIRS 2
#define MAX_QPS 32
#define START S_NS /* time at which the exchange starts */
#define ONE_WAY (15 * US)
/* The measured time: the path can carry so many packets, but at least so many round trips. Senders need longer until
 * they share a path. */
#define PACKETS 8000u
#define ROUND_TRIPS 600u
#define SHARE_TIMES 8
#define GOODPUT_LEAST 70 /* percent of the path's rate */
#define WASTE_MOST 5 /* percent of all packets with data */
#define SHARE_MOST 3 /* times the share of the other sender */
#define TRACED 1000u /* packets that are printed if a cell is named */
#define FRAME_BYTES 60u /* of a packet beside its payload: BTH, ICRC, and the network's headers */

/* One sender: the QPs between two hosts. */
struct load {
    uint8_t opcode; /* enum send_op */
    uint8_t mtu_code; /* enum ibv_mtu */
    uint32_t qps;
    uint32_t message; /* bytes */
};
struct cell {
    uint32_t mbits; /* rate of the path, Mbit/s */
    uint32_t buffer; /* packets */
    uint64_t one_way; /* ns; 0: ONE_WAY */
    bool both_ways; /* the receivers send as much */
    bool measured; /* only measured: the requirements are not met yet */
    bool unfair; /* the same, with selective retransmission */
    bool selective;
    struct load load[MAX_PAIRS];
};

struct station {
    struct engine_config cfg;
    void *mem;
    struct engine *e;
    struct qp *qp[MAX_QPS];
    void *qpmem[MAX_QPS];
    uint32_t key;
    bool touched, sends;
    uint32_t failed; /* completions with an error */
};
/* Hosts 0 and 1 are the first pair, hosts 2 and 3 the second one. The hosts with even numbers post the requests. */
struct exchange {
    const struct cell *cell;
    struct station host[2 * MAX_PAIRS];
    int hosts;
    struct evq events;
    struct net net;
    uint64_t now;
    uint32_t trace; /* packets that are still to be printed */
};
struct result {
    double goodput; /* percent of the path's rate, in the direction with the least */
    double share; /* how many times the smaller share of two senders fits into the larger one */
    double first; /* goodput of the first sender, percent */
    double waste; /* percent */
    uint64_t sent, lost, wasted; /* packets with data */
    uint32_t failed;
};

static uint32_t mtu_of(const struct load *l)
{
    return 128u << l->mtu_code;
}

/* --- hosts ------------------------------------------------------------------------------------- */

static void make_host(struct station *h, int number, const struct load *l, bool selective)
{
    static const struct owner_ops owner = {0};
    struct qp_init init = {
        .type = QPT_RC, .pd = 1, .caps = {DEPTH, 1, 1, 1, 0}, .send_cq = h, .recv_cq = h, .owner = h};
    struct mr_init mr = {.pd = 1,
                         .va = 1 << 20,
                         .iova = 1 << 20,
                         .length = l->message,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ};
    engine_config_defaults(&h->cfg);
    h->cfg.max_qp = MAX_QPS;
    h->cfg.max_mr = h->cfg.max_peers = 1;
    h->cfg.selective = selective;
    h->cfg.num_gids = 1;
    bare_gid(number, h->cfg.gids[0]);
    h->mem = bare_zeroed(engine_size(&h->cfg));
    h->e = engine_init(h->mem, &h->cfg, &bare_mem_ops, NULL, &owner, NULL);
    if (!h->e || mr_register(h->e, &mr, &h->key) != 0)
        abort();
    for (uint32_t i = 0; i < l->qps; i++) {
        h->qpmem[i] = bare_zeroed(qp_size(&init));
        if (qp_create(h->e, &init, h->qpmem[i], &h->qp[i]) != 0)
            abort();
    }
}

static void connect_pair(struct exchange *x, int pair, const struct load *l)
{
    const struct qp_attr attr = {.port = 1,
                                 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
                                 .path_mtu = l->mtu_code,
                                 .timeout = 14,
                                 .retry_cnt = 7,
                                 .rnr_retry = 7,
                                 .max_rd_atomic = 16,
                                 .max_dest_rd_atomic = 16};
    struct station *a = &x->host[2 * pair], *b = &x->host[2 * pair + 1];
    make_host(a, 2 * pair, l, x->cell->selective);
    make_host(b, 2 * pair + 1, l, x->cell->selective);
    for (uint32_t i = 0; i < l->qps; i++) {
        bare_connect(a->qp[i], b->qp[i], 2 * pair + 1, &attr);
        bare_connect(b->qp[i], a->qp[i], 2 * pair, &attr);
    }
}

/* Posts as much as each QP takes. */
static void post(struct exchange *x, int number)
{
    const struct station *h = &x->host[number], *peer = &x->host[number ^ 1];
    const struct load *l = &x->cell->load[number / 2];
    struct sge sge = {1 << 20, l->message, h->key};
    struct send_wr wr = {
        .opcode = l->opcode, .flags = SEND_SIGNALED, .num_sge = 1, .remote_addr = 1 << 20, .rkey = peer->key};
    for (uint32_t i = 0; i < l->qps; i++)
        while (qp_post_send(h->qp[i], &wr, &sge, NULL) == 0)
            ;
}

static bool complete(struct station *h)
{
    const struct completion *c;
    bool any = false;
    while ((c = engine_peek_completion(h->e)) != NULL) {
        any = true;
        h->failed += c->status != WC_SUCCESS;
        engine_drop_completion(h->e);
    }
    return any;
}

static void serve(struct exchange *x, int number)
{
    struct station *h = &x->host[number];
    engine_expire(h->e, x->now);
    do
        bare_transmit(h->e, number, &x->net, x->now);
    while (complete(h) && h->sends && h->failed == 0 && (post(x, number), true));
}

/* --- one cell ---------------------------------------------------------------------------------- */

static uint64_t earliest(const struct exchange *x)
{
    uint64_t t = evq_next(&x->events);
    for (int i = 0; i < x->hosts; i++) {
        uint64_t d = engine_deadline(x->host[i].e);
        t = d < t ? d : t;
    }
    return t;
}

static void run_until(struct exchange *x, uint64_t end)
{
    uint64_t t;
    while ((t = earliest(x)) < end) {
        struct timed ev;
        x->now = t > x->now ? t : x->now;
        while (evq_pop(&x->events, x->now, &ev)) {
            struct wirepkt *p = ev.p;
            struct station *to = &x->host[p->dst];
            to->touched = true;
            if (x->trace) {
                struct pkt k;
                pkt_decode(p->data, p->len, &k);
                x->trace--;
                printf(
                    "%11.3f us  to host %d  QP %-3u  opcode %02x  PSN %-6u syndrome %02x  %u bytes; %u packets lost\n",
                    (double)(x->now - START) / US, p->dst, k.dest_qpn, k.opcode, k.psn,
                    op_table[k.opcode].headers & OP_HAS_AETH ? k.aeth.syndrome : 0, p->len, x->net.lost);
            }
            bare_receive(to->e, p, &x->net, x->now);
        }
        for (int i = 0; i < x->hosts; i++) {
            if (!x->host[i].touched && engine_deadline(x->host[i].e) > x->now)
                continue;
            x->host[i].touched = false;
            serve(x, i);
        }
    }
    x->now = end;
}

static void end_exchange(struct exchange *x)
{
    struct timed ev;
    while (evq_pop(&x->events, UINT64_MAX, &ev))
        free(ev.p);
    free(x->events.heap);
    net_free(&x->net);
    for (int i = 0; i < x->hosts; i++) {
        free(x->host[i].mem);
        for (uint32_t k = 0; k < MAX_QPS; k++)
            free(x->host[i].qpmem[k]);
    }
}

/* Packets with data that are on their way. */
static uint64_t on_the_way(const struct exchange *x)
{
    uint64_t n = 0;
    for (size_t i = 0; i < x->events.n; i++)
        n += ((const struct wirepkt *)x->events.heap[i].p)->len > LONG_PACKET;
    return n;
}

/* Bytes that the loads could bring through the path in time ns, if every packet were useful. */
static double capacity(const struct cell *c, const struct load *l, uint64_t ns)
{
    uint32_t mtu = mtu_of(l) < l->message ? mtu_of(l) : l->message;
    return (double)c->mbits / 8000 * (double)ns * mtu / (mtu + FRAME_BYTES);
}

/* Goodput of the host's sender, in percent of what the path can carry. *pkts: packets that its receiver has used. */
static double goodput(const struct exchange *x, int number, uint64_t *pkts)
{
    const struct load *l = &x->cell->load[number / 2];
    int receiver = l->opcode == WR_RDMA_READ ? number : number ^ 1;
    uint64_t bytes = engine_counters(x->host[receiver].e)->rcvd_bytes;
    *pkts += bytes / (mtu_of(l) < l->message ? mtu_of(l) : l->message);
    return 100 * (double)bytes / capacity(x->cell, l, x->now - START);
}

static void evaluate(const struct exchange *x, struct result *r)
{
    const struct cell *c = x->cell;
    uint64_t used = 0;
    double way[2] = {0, 0}, one[2 * MAX_PAIRS] = {0};
    *r = (struct result){.goodput = 1000, .share = 1};
    for (int i = 0; i < x->hosts; i++) {
        r->failed += x->host[i].failed;
        if (x->host[i].sends)
            way[i % 2] += one[i] = goodput(x, i, &used);
    }
    r->first = one[0];
    for (int i = 0; i < 2; i++)
        if (x->host[i].sends)
            r->goodput = way[i] < r->goodput ? way[i] : r->goodput;
    for (int i = 0; i < 2 && c->load[1].qps; i++) {
        double more = one[i] > one[i + 2] ? one[i] : one[i + 2], less = one[i] + one[i + 2] - more;
        if (x->host[i].sends && (less <= 0 || more / less > r->share))
            r->share = less > 0 ? more / less : 1000;
    }
    for (int i = 0; i < 2; i++) {
        r->sent += x->net.link[i][0].long_sent;
        r->lost += x->net.link[i][0].long_lost;
    }
    uint64_t fresh = used + r->lost + on_the_way(x);
    r->wasted = r->sent > fresh ? r->sent - fresh : 0;
    r->waste = r->sent ? 100 * (double)r->wasted / (double)r->sent : 0;
}

static void run_cell(const struct cell *c, struct result *r, uint32_t trace)
{
    static struct exchange x;
    struct net_faults faults = {
        .delay_ns = c->one_way ? c->one_way : ONE_WAY, .rate = c->mbits * 125, .buffer = c->buffer, .bottleneck = true};
    memset(&x, 0, sizeof x);
    x.cell = c;
    x.now = START;
    x.trace = trace;
    net_init(&x.net, &x.events, &faults, 1);
    uint32_t mtu = 0;
    for (int i = 0; i < MAX_PAIRS && c->load[i].qps; i++) {
        connect_pair(&x, i, &c->load[i]);
        x.hosts += 2;
        x.host[2 * i].sends = true;
        x.host[2 * i + 1].sends = c->both_ways;
        mtu = mtu_of(&c->load[i]) > mtu ? mtu_of(&c->load[i]) : mtu;
    }
    for (int i = 0; i < x.hosts; i++) {
        if (x.host[i].sends)
            post(&x, i);
        serve(&x, i);
    }
    uint64_t ns = (uint64_t)PACKETS * (mtu + FRAME_BYTES) * 8000 / c->mbits, rtts = ROUND_TRIPS * 2 * faults.delay_ns;
    run_until(&x, START + (ns > rtts ? ns : rtts) * (x.hosts > 2 ? SHARE_TIMES : 1));
    evaluate(&x, r);
    end_exchange(&x);
}

/* --- the matrix -------------------------------------------------------------------------------- */

static void cell_name(const struct cell *c, char *out, size_t cap)
{
    int n = snprintf(out, cap, "%u:%u", c->mbits, c->buffer);
    for (int i = 0; i < MAX_PAIRS && c->load[i].qps; i++) {
        const struct load *l = &c->load[i];
        n += snprintf(out + n, cap - (size_t)n, ":%s,%u,%u,%u", l->opcode == WR_RDMA_READ ? "read" : "write", mtu_of(l),
                      l->qps, l->message);
    }
    if (c->one_way)
        n += snprintf(out + n, cap - (size_t)n, ":%uus", (unsigned)(c->one_way / US));
    if (c->both_ways)
        n += snprintf(out + n, cap - (size_t)n, ":both");
    if (c->selective)
        snprintf(out + n, cap - (size_t)n, ":selective");
}

struct run {
    const char *only;
    bool verbose, selective;
    uint64_t passed, failed, measured;
};

static void try_cell(struct run *run, const struct cell *from)
{
    char name[128];
    struct result r;
    struct cell cell = *from, *c = &cell;
    c->selective = run->selective;
    c->measured |= c->selective && c->unfair;
    cell_name(c, name, sizeof name);
    if (run->only && strcmp(run->only, name) != 0)
        return;
    run_cell(c, &r, run->only ? TRACED : 0);
    bool ok = r.failed == 0 && r.goodput >= GOODPUT_LEAST && r.waste < WASTE_MOST && r.share <= SHARE_MOST;
    run->passed += ok;
    run->failed += !ok && !c->measured;
    run->measured += !ok && c->measured;
    if (run->verbose)
        printf("%-44s %8llu %8llu %8llu %6.1f %6.1f %6.1f %6.1f %4u%s\n", name, (unsigned long long)r.sent,
               (unsigned long long)r.lost, (unsigned long long)r.wasted, r.waste, r.goodput, r.first, r.share, r.failed,
               ok ? "" : "  <--");
    if (!ok && !c->measured)
        printf("FAILED  sim --slow %s\n    waste %.1f %%, goodput %.1f %%, shares 1:%.1f, %u errors\n", name, r.waste,
               r.goodput, r.share, r.failed);
}

/* At 10 Gbit/s, a buffer of less than 16 packets holds a few microseconds of the path. The requirements are not met
 * there with all loads, so these cells are only measured. */
static void try_rates(struct run *run, const struct load *l)
{
    static const uint32_t mbits[] = {1, 10, 100, 1000, 10000};
    static const uint32_t buffers[] = {1, 4, 16, 100, 1000};
    for (size_t r = 0; r < sizeof mbits / sizeof mbits[0]; r++)
        for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++)
            try_cell(run, &(struct cell){.mbits = mbits[r],
                                         .buffer = buffers[b],
                                         .measured = mbits[r] == 10000 && buffers[b] < 16,
                                         .load[0] = *l});
}

uint64_t slow_paths(const char *cell, bool verbose, uint64_t *passed)
{
    static const struct load loads[] = {
        {WR_RDMA_WRITE, 5, 1, 65536},   {WR_RDMA_WRITE, 5, 4, 65536}, {WR_RDMA_WRITE, 5, 32, 65536},
        {WR_RDMA_WRITE, 3, 1, 1 << 20}, {WR_RDMA_WRITE, 3, 32, 1024}, {WR_RDMA_READ, 5, 1, 65536},
        {WR_RDMA_READ, 3, 32, 1 << 20},
    };
    /* clang-format off */
    static const struct cell special[] = {
        /* both ways: data of one direction and ACKs of the other share the buffers */
        {.mbits = 100, .buffer = 16, .both_ways = true, .load = {{WR_RDMA_WRITE, 3, 1, 65536}}},
        {.mbits = 100, .buffer = 100, .both_ways = true, .load = {{WR_RDMA_WRITE, 3, 4, 65536}}},
        {.mbits = 1000, .buffer = 1000, .both_ways = true, .load = {{WR_RDMA_WRITE, 3, 4, 65536}}},
        {.mbits = 10000, .buffer = 100, .both_ways = true, .load = {{WR_RDMA_WRITE, 5, 32, 65536}}},
        /* long ways */
        {.mbits = 100, .buffer = 100, .one_way = 5 * MS, .load = {{WR_RDMA_WRITE, 3, 4, 65536}}},
        {.mbits = 1000, .buffer = 1000, .one_way = 1 * MS, .load = {{WR_RDMA_WRITE, 5, 4, 65536}}},
        /* two senders */
        {.mbits = 10, .buffer = 16, .load = {{WR_RDMA_WRITE, 5, 1, 65536}, {WR_RDMA_WRITE, 3, 1, 65536}}},
        {.mbits = 100, .buffer = 100, .unfair = true, .load = {{WR_RDMA_WRITE, 5, 1, 65536}, {WR_RDMA_WRITE, 3, 1, 65536}}},
        {.mbits = 100, .buffer = 100, .load = {{WR_RDMA_WRITE, 5, 1, 65536}, {WR_RDMA_WRITE, 5, 32, 65536}}},
        {.mbits = 1000, .buffer = 100, .load = {{WR_RDMA_WRITE, 5, 1, 1 << 20}, {WR_RDMA_WRITE, 3, 16, 4096}}},
        {.mbits = 1000, .buffer = 1000, .load = {{WR_RDMA_WRITE, 5, 1, 65536}, {WR_RDMA_WRITE, 3, 4, 65536}}},
        {.mbits = 10000, .buffer = 100, .unfair = true, .load = {{WR_RDMA_WRITE, 5, 1, 65536}, {WR_RDMA_WRITE, 3, 4, 65536}}},
        {.mbits = 1, .buffer = 1000, .load = {{WR_RDMA_WRITE, 5, 1, 65536}, {WR_RDMA_WRITE, 3, 32, 65536}}},
    };
    /* clang-format on */
    struct run run = {.only = cell, .verbose = verbose};
    if (verbose)
        printf("%-44s %8s %8s %8s %6s %6s %6s %6s %4s\n", "Mbit/s : buffer : operation, MTU, QPs, bytes", "packets",
               "lost", "wasted", "%", "good %", "first", "shares", "err");
    for (int selective = 0; selective < 2; selective++) {
        run.selective = selective;
        for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
            try_rates(&run, &loads[i]);
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
            try_cell(&run, &special[i]);
    }
    if (run.passed + run.failed + run.measured == 0)
        printf("sim: no cell is called %s\n", cell);
    *passed += run.passed;
    printf("slow paths: %llu of %llu cells as required, %llu others measured\n", (unsigned long long)run.passed,
           (unsigned long long)(run.passed + run.failed), (unsigned long long)run.measured);
    return run.failed + (run.passed + run.failed + run.measured == 0);
}
