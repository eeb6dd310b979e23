// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/emulated/emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/netem/netem_plan.h"
#include "tests/sim/host/bare.h"
#include "tests/sim/sim.h"

#define HOSTS 9
#define FLOWS 8
#define DEPTH 16
#define START S_NS
#define MTU 1024u
/* Bytes of a packet beside its payload: BTH, ICRC, and the headers that links count for an IPv6 packet. (The addresses of the
 * simulator are neither IPv4 nor IPv6; here they pass for IPv6.) */
#define OVERHEAD (16u + NETEM_OVERHEAD_V6)
#define TOLERANCE 5 /* percent */
#define SETTLED (100 * MS)

/* One sender and one receiver. */
struct flow {
    int from, to;
    uint32_t message; /* bytes */
    uint32_t messages; /* how many it sends, one after the other; 0: it always has some posted */
};
struct network {
    const char *name, *plan;
    struct flow flow[FLOWS];
    uint64_t span; /* how long it is looked at, ns; 0: until all messages have completed */
    uint8_t timeout; /* of the QPs; 0: 14 */
    bool ecn;
    /* The computed answer: bytes per second of all flows together, or the time until all messages have completed, ns. */
    double rate, time;
    /* Further conditions for the network. */
    bool no_loss, loss, marks, timeouts;
    double share; /* the rates of DCQCN swing: the flows reach so many percent of the computed rate, or more */
    double fair; /* no flow gets less than this part of an equal share */
    double jain; /* Jain's index of the flows is so much, or more */
    double wait; /* no packet waits longer in a queue that marks, after the time SETTLED, ns; 0: no limit */
};

struct station {
    struct engine_config cfg;
    void *mem, *qpmem[FLOWS];
    struct engine *e;
    struct qp *qp[FLOWS];
    uint32_t key;
    bool touched;
};
struct trial {
    const struct network *n;
    struct netem_plan plan;
    struct netem_queue queues[NETEM_QUEUES];
    struct station host[HOSTS];
    struct evq events;
    struct net net;
    uint64_t now, random, lost, marked;
    uint64_t longest; /* time in a queue that marks, ns */
    uint32_t posted[FLOWS], done[FLOWS];
    uint32_t failed;
};

static struct trial x;

/* --- the network ------------------------------------------------------------------------------- */

/* Passes the next link at the time `at`; the last part of the way is the arrival. */
static void pass(struct wirepkt *p, unsigned next, uint64_t at)
{
    struct netem_hop hops[NETEM_HOPS];
    unsigned n = netem_plan_route(&x.plan, (uint32_t)p->src, (uint32_t)p->dst, hops);

    if (next < n) {
        const struct netem_hop *h = &hops[next];
        x.random = x.random * 6364136223846793005u + 1442695040888963407u;
        struct netem_passage r =
            netem_link_pass(h->link, &x.queues[h->queue], p->len + NETEM_OVERHEAD_V6, x.random ^ x.random >> 31, at);

        if (r.lost) {
            x.lost++;
            x.net.inflight--;
            free(p);
            return;
        }
        if (r.marked && x.n->ecn) {
            p->ce = true;
            x.marked++;
        }
        if (h->link->mark_bytes && at >= START + SETTLED && r.arrival - at - h->link->latency_ns > x.longest)
            x.longest = r.arrival - at - h->link->latency_ns;
        at = r.arrival;
        next++;
    }
    evq_push(&x.events, (struct timed){.at = at, .kind = EV_PACKET, .v = (int)next, .n = next >= n, .p = p});
}

static void forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    self->net->inflight++;
    pass(p, 0, now);
}

/* --- hosts ------------------------------------------------------------------------------------- */

static void make_host(struct station *h, int number)
{
    static const struct owner_ops owner = {0};
    struct mr_init mr = {.pd = 1, .va = 1 << 20, .iova = 1 << 20, .length = 1 << 20};

    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
    engine_config_defaults(&h->cfg);
    h->cfg.max_qp = FLOWS;
    h->cfg.max_mr = 1;
    h->cfg.max_peers = HOSTS;
    h->cfg.num_gids = 1;
    h->cfg.ecn = x.n->ecn;
    bare_gid(number, h->cfg.gids[0]);
    h->mem = bare_zeroed(engine_size(&h->cfg));
    h->e = engine_init(h->mem, &h->cfg, &bare_mem_ops, NULL, &owner, NULL);
    if (!h->e || mr_register(h->e, &mr, &h->key) != 0)
        abort();
}

static void make_qp(struct station *h, unsigned flow)
{
    struct qp_init init = {
        .type = QPT_RC, .pd = 1, .caps = {DEPTH, 1, 1, 1, 0}, .send_cq = h, .recv_cq = h, .owner = &x.done[flow]};

    h->qpmem[flow] = bare_zeroed(qp_size(&init));
    if (qp_create(h->e, &init, h->qpmem[flow], &h->qp[flow]) != 0)
        abort();
}

static void connect_flow(unsigned i)
{
    const struct flow *f = &x.n->flow[i];
    const struct qp_attr attr = {.port = 1,
                                 .access = ACCESS_REMOTE_WRITE,
                                 .path_mtu = 3, /* MTU */
                                 .timeout = x.n->timeout ? x.n->timeout : 14,
                                 .retry_cnt = 7,
                                 .rnr_retry = 7};
    struct station *a = &x.host[f->from], *b = &x.host[f->to];

    make_qp(a, i);
    make_qp(b, i);
    bare_connect(a->qp[i], b->qp[i], f->to, &attr);
    bare_connect(b->qp[i], a->qp[i], f->from, &attr);
}

static void post(unsigned i)
{
    const struct flow *f = &x.n->flow[i];
    const struct station *h = &x.host[f->from];
    struct sge sge = {1 << 20, f->message, h->key};
    struct send_wr wr = {.opcode = WR_RDMA_WRITE,
                         .flags = SEND_SIGNALED,
                         .num_sge = 1,
                         .remote_addr = 1 << 20,
                         .rkey = x.host[f->to].key};

    while ((!f->messages || (x.posted[i] < f->messages && x.posted[i] == x.done[i])) &&
           qp_post_send(h->qp[i], &wr, &sge, NULL) == 0)
        x.posted[i]++;
}

static bool complete(struct station *h)
{
    const struct completion *c;
    bool any = false;

    while ((c = engine_peek_completion(h->e)) != NULL) {
        any = true;
        x.failed += c->status != WC_SUCCESS;
        ++*(uint32_t *)c->qp_owner;
        engine_drop_completion(h->e);
    }
    return any;
}

static void serve(int number)
{
    struct station *h = &x.host[number];
    bool again = true;

    engine_expire(h->e, x.now);
    while (again) {
        bare_transmit(h->e, number, &x.net, x.now);
        again = complete(h) && x.failed == 0;
        for (unsigned i = 0; again && i < FLOWS && x.n->flow[i].message; i++)
            if (x.n->flow[i].from == number)
                post(i);
    }
}

/* --- running ----------------------------------------------------------------------------------- */

static uint64_t earliest(void)
{
    uint64_t t = evq_next(&x.events);

    for (int i = 0; i < HOSTS; i++) {
        uint64_t d = engine_deadline(x.host[i].e);
        t = d < t ? d : t;
    }
    return t;
}

static bool all_done(void)
{
    for (unsigned i = 0; i < FLOWS && x.n->flow[i].message; i++)
        if (!x.n->flow[i].messages || x.done[i] < x.n->flow[i].messages)
            return false;
    return true;
}

static void run(void)
{
    uint64_t end = x.n->span ? START + x.n->span : UINT64_MAX, t;

    while (!all_done() && (t = earliest()) < end) {
        struct timed ev;
        x.now = t > x.now ? t : x.now;
        while (evq_pop(&x.events, x.now, &ev)) {
            struct wirepkt *p = ev.p;
            if (!ev.n) {
                pass(p, (unsigned)ev.v, ev.at);
                continue;
            }
            x.host[p->dst].touched = true;
            bare_receive(x.host[p->dst].e, p, &x.net, x.now);
        }
        for (int i = 0; i < HOSTS; i++) {
            if (!x.host[i].touched && engine_deadline(x.host[i].e) > x.now)
                continue;
            x.host[i].touched = false;
            serve(i);
        }
    }
    if (x.n->span)
        x.now = end;
}

static void set_up(const struct network *n)
{
    const struct net_faults none = {0};
    char why[NETEM_WHY_MAX];

    memset(&x, 0, sizeof x);
    x.n = n;
    x.now = START;
    if (netem_plan_parse(n->plan, &x.plan, why) != 0) {
        printf("%s: %s\n", n->name, why);
        abort();
    }
    net_init(&x.net, &x.events, &none, 1);
    x.net.node[0].forward = forward;
    for (int i = 0; i < HOSTS; i++)
        make_host(&x.host[i], i);
    for (unsigned i = 0; i < FLOWS && n->flow[i].message; i++) {
        connect_flow(i);
        post(i);
    }
    for (int i = 0; i < HOSTS; i++)
        serve(i);
}

static void tear_down(void)
{
    struct timed ev;

    while (evq_pop(&x.events, UINT64_MAX, &ev))
        free(ev.p);
    free(x.events.heap);
    net_free(&x.net);
    for (int i = 0; i < HOSTS; i++) {
        free(x.host[i].mem);
        for (unsigned k = 0; k < FLOWS; k++)
            free(x.host[i].qpmem[k]);
    }
}

/* --- the networks ------------------------------------------------------------------------------ */

/* Payload of full packets that a link of so many bits per second carries, bytes per second. */
#define GOODPUT(bits) ((bits) / 8.0 * MTU / (MTU + OVERHEAD))
/* How long such a link sends n packets of so many bytes of payload, ns. */
#define SENDING(bits, n, bytes) ((n) * ((bytes) + OVERHEAD) * 8e9 / (bits))
/* An ACK has an AETH, and the first packet of a WRITE a RETH. */
#define ACK 4
#define RETH 16

/* Several hosts to host 8, whose port marks packets. wait: how long a packet waits there at most, after the first moments, ns. */
#define INCAST(title, speed, bits, marks_at, waits, ...)                                                               \
    {                                                                                                                  \
        .name = title, .plan = "to 8: rate " speed ", " marks_at, .flow = {__VA_ARGS__}, .span = 2 * S_NS,             \
        .ecn = true, .rate = GOODPUT(bits), .marks = true, .share = 85, .jain = 0.9, .wait = (waits), .no_loss = true  \
    }
#define INTO8(from)                                                                                                    \
    {                                                                                                                  \
        from, 8, 65536, 0                                                                                              \
    }
#define TWO INTO8(0), INTO8(1)
#define FOUR TWO, INTO8(2), INTO8(3)
#define EIGHT FOUR, INTO8(4), INTO8(5), INTO8(6), INTO8(7)
#define LAB "queue 1MiB, latency 10us"
#define FAR "queue 8MiB, latency 1ms"
/* How long a link sends so many KiB, ns. */
#define KIB(n, bits) ((n)*1024 * 8e9 / (bits))

static const struct network networks[] = {
    {.name = "latency", .plan = "default: latency 40us", .flow = {{0, 1, 8, 100}}, .time = 100 * 80e3},
    {.name = "both directions",
     .plan = "0 -> 1: latency 1ms\n1 -> 0: latency 3ms",
     .flow = {{0, 1, 8, 10}},
     .time = 10 * 4e6},
    {.name = "jitter", /* on average half of it, twice */
     .plan = "default: latency 10us, jitter 40us",
     .flow = {{0, 1, 8, 2000}},
     .time = 2000 * (20e3 + 40e3)},
    {.name = "small messages",
     .plan = "default: rate 100Mbit, latency 5us",
     .flow = {{0, 1, 64, 100}},
     .time = 100 * (10e3 + SENDING(1e8, 1, 64 + RETH) + SENDING(1e8, 1, ACK))},
    {.name = "one large message",
     .plan = "default: rate 1Gbit, latency 10us",
     .flow = {{0, 1, 1 << 20, 1}},
     .time = 20e3 + SENDING(1e9, 1024, MTU) + SENDING(1e9, 1, ACK)},
    {.name = "four links in a row",
     .plan = "rack a: 0\nrack b: 1\nfrom 0: rate 1Gbit, latency 1us\na <-> b: rate 1Gbit, latency 2us\n"
             "0 <-> 1: rate 1Gbit, latency 3us\nto 1: rate 1Gbit, latency 4us",
     .flow = {{0, 1, 64, 100}}, /* the ACK comes back over two of them */
     .time = 100 * (10e3 + 5e3 + SENDING(1e9, 4, 64 + RETH) + SENDING(1e9, 2, ACK))},
    {.name = "stream of 100 Mbit/s",
     .plan = "default: rate 100Mbit, latency 10us, queue 256KiB",
     .flow = {{0, 1, 65536, 0}},
     .span = S_NS,
     .rate = GOODPUT(1e8)},
    {.name = "stream of 10 Gbit/s",
     .plan = "default: rate 10Gbit, latency 10us, queue 1MiB",
     .flow = {{0, 1, 65536, 0}},
     .span = 100 * MS,
     .rate = GOODPUT(1e10)},
    {.name = "pairs do not share",
     .plan = "default: rate 1Gbit, latency 10us, queue 256KiB",
     .flow = {{0, 1, 65536, 0}, {2, 3, 65536, 0}, {0, 2, 65536, 0}},
     .span = 300 * MS,
     .rate = 3 * GOODPUT(1e9),
     .fair = 0.95},
    {.name = "two racks",
     .plan = "rack left: 0-1\nrack right: 2-3\nleft <-> right: rate 1Gbit, latency 20us, queue 256KiB\n"
             "to each: rate 10Gbit, latency 1us, queue 1MiB",
     .flow = {{0, 2, 65536, 0}, {1, 3, 65536, 0}},
     .span = 500 * MS,
     .rate = GOODPUT(1e9),
     .fair = 0.5},
    {.name = "incast",
     .plan = "default: latency 5us\nto 3: rate 1Gbit, queue 64KiB",
     .flow = {{0, 3, 65536, 0}, {1, 3, 65536, 0}, {2, 3, 65536, 0}},
     .span = 500 * MS,
     .rate = GOODPUT(1e9),
     .loss = true},
    INCAST("incast with ECN, 2", "1Gbit", 1e9, LAB ", mark 32KiB to 128KiB", KIB(256, 1e9), TWO),
    INCAST("incast with ECN, 4", "1Gbit", 1e9, LAB ", mark 32KiB to 128KiB", KIB(256, 1e9), FOUR),
    INCAST("incast with ECN, 8", "1Gbit", 1e9, LAB ", mark 32KiB to 128KiB", KIB(256, 1e9), EIGHT),
    INCAST("one threshold, 2", "1Gbit", 1e9, LAB ", mark 32KiB", KIB(128, 1e9), TWO),
    INCAST("one threshold, 4", "1Gbit", 1e9, LAB ", mark 32KiB", KIB(128, 1e9), FOUR),
    INCAST("one threshold, 8", "1Gbit", 1e9, LAB ", mark 32KiB", KIB(128, 1e9), EIGHT),
    INCAST("low threshold, 2", "1Gbit", 1e9, LAB ", mark 8KiB", KIB(64, 1e9), TWO),
    INCAST("low threshold, 8", "1Gbit", 1e9, LAB ", mark 8KiB", KIB(64, 1e9), EIGHT),
    INCAST("wide thresholds, 2", "1Gbit", 1e9, LAB ", mark 16KiB to 512KiB", KIB(512, 1e9), TWO),
    INCAST("wide thresholds, 8", "1Gbit", 1e9, LAB ", mark 16KiB to 512KiB", KIB(512, 1e9), EIGHT),
    INCAST("10 Gbit/s, 2", "10Gbit", 1e10, LAB ", mark 32KiB to 128KiB", KIB(128, 1e10), TWO),
    INCAST("10 Gbit/s, 4", "10Gbit", 1e10, LAB ", mark 32KiB to 128KiB", KIB(128, 1e10), FOUR),
    INCAST("10 Gbit/s, 8", "10Gbit", 1e10, LAB ", mark 32KiB to 128KiB", KIB(128, 1e10), EIGHT),
    INCAST("10 Gbit/s, one threshold", "10Gbit", 1e10, LAB ", mark 32KiB", KIB(128, 1e10), FOUR),
    INCAST("100 Mbit/s, 2", "100Mbit", 1e8, LAB ", mark 32KiB", KIB(512, 1e8), TWO),
    INCAST("1 ms away, 2", "1Gbit", 1e9, FAR ", mark 128KiB", KIB(2048, 1e9), TWO),
    INCAST("1 ms away, 8", "1Gbit", 1e9, FAR ", mark 128KiB", KIB(2048, 1e9), EIGHT),
    {.name = "later than the timeout",
     .plan = "default: latency 20ms",
     .flow = {{0, 1, 8, 3}},
     .timeout = 12, /* 17 ms */
     .time = 3 * 40e6,
     .timeouts = true},
};

/* --- the answers ------------------------------------------------------------------------------- */

static double bytes_of(unsigned flow)
{
    return (double)x.done[flow] * x.n->flow[flow].message;
}

/* The measured answer in percent of the computed one. */
static double percent(void)
{
    double ns = (double)(x.now - START), bytes = 0;

    for (unsigned i = 0; i < FLOWS; i++)
        bytes += bytes_of(i);
    return 100 * (x.n->rate > 0 ? bytes * 1e9 / ns / x.n->rate : ns / x.n->time);
}

/* Jain's index: 1 if all flows are equal, 1/n if one of n has everything. */
static double jain(void)
{
    double sum = 0, squares = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < FLOWS && x.n->flow[i].message; i++, n++) {
        sum += bytes_of(i);
        squares += bytes_of(i) * bytes_of(i);
    }
    return squares > 0 ? sum * sum / (n * squares) : 0;
}

static bool is_fair(void)
{
    unsigned n = 0;
    double all = 0, least = 1e30;

    for (unsigned i = 0; i < FLOWS && x.n->flow[i].message; i++, n++) {
        all += bytes_of(i);
        least = bytes_of(i) < least ? bytes_of(i) : least;
    }
    return least >= x.n->fair * all / n && jain() >= x.n->jain;
}

static uint64_t timeouts(void)
{
    uint64_t n = 0;

    for (int i = 0; i < HOSTS; i++)
        n += engine_counters(x.host[i].e)->timeout_retrans;
    return n;
}

static bool is_short(void)
{
    return x.n->wait == 0 || (double)x.longest <= x.n->wait;
}

static bool is_right(double p)
{
    return x.n->share > 0 ? p >= x.n->share && p <= 100 + TOLERANCE : fabs(p - 100) <= TOLERANCE;
}

static bool holds(bool wanted, bool is)
{
    return !wanted || is;
}

uint64_t emulated_networks(const char *only, bool verbose, uint64_t *passed)
{
    uint64_t failed = 0, tried = 0, shares = 0;

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        const struct network *n = &networks[i];
        if (only && strcmp(only, n->name) != 0)
            continue;
        set_up(n);
        run();
        double p = percent();
        bool right = x.failed == 0 && is_right(p) && is_fair() && is_short() && holds(n->no_loss, x.lost == 0) &&
                     holds(n->loss, x.lost > 0) && holds(n->marks, x.marked > 0) && holds(n->timeouts, timeouts() > 0);
        if (verbose || !right)
            printf("%-7s %-24s %6.1f %% of the computed %s, %llu packets lost, %llu marked, %llu timeouts, %u errors, "
                   "Jain %.2f, %.0f us in the queue\n",
                   right ? "ok" : "FAILED", n->name, p, n->rate > 0 ? "rate" : "time", (unsigned long long)x.lost,
                   (unsigned long long)x.marked, (unsigned long long)timeouts(), x.failed, jain(),
                   (double)x.longest / 1e3);
        tried++;
        failed += !right;
        shares += right && n->share > 0;
        *passed += right;
        tear_down();
    }
    if (tried == 0)
        printf("sim: no network is called %s\n", only);
    printf("emulated networks: %llu of %llu as required; %llu within %d %% of the computed answer, %llu reach the "
           "required share\n",
           (unsigned long long)(tried - failed), (unsigned long long)tried,
           (unsigned long long)(tried - failed - shares), TOLERANCE, (unsigned long long)shares);
    return failed + (tried == 0);
}
