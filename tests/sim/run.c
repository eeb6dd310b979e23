// SPDX-License-Identifier: BSD-2-Clause
/* Virtual time: jumps to the next event, until there is none. */
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define STUCK_STEPS 2000
#define MAX_STEPS 400000

_Noreturn void sim_fail(struct sim *s, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(s->failure, sizeof s->failure, "at %llu.%03llu us: ", (unsigned long long)(s->now / 1000),
                     (unsigned long long)(s->now % 1000));
    va_start(ap, fmt);
    vsnprintf(s->failure + n, sizeof s->failure - (size_t)n, fmt, ap);
    va_end(ap);
    longjmp(s->fail_to, 1);
}

static uint64_t next_moment(struct sim *s)
{
    uint64_t t = evq_next(&s->events);
    for (int i = 0; i < s->sc.nhosts; i++) {
        uint64_t d = engine_deadline(s->host[i].e);
        t = d < t ? d : t;
    }
    return t;
}

static void dispatch(struct sim *s, const struct timed *ev, bool *touched)
{
    switch (ev->kind) {
    case EV_PACKET: {
        struct wirepkt *p = ev->p;
        s->net.inflight--;
        host_packet(&s->host[p->dst], p);
        break;
    }
    case EV_WAKE:
        s->host[ev->n].wake_pending = false;
        touched[ev->n] = true;
        break;
    case EV_POST:
        touched[ev->n] = true;
        break;
    case EV_POLL:
        host_poll(&s->host[ev->n]);
        touched[ev->n] = true;
        break;
    case EV_STEP:
        user_step(&s->end[ev->n], (enum end_step)ev->v);
        touched[s->end[ev->n].host] = true;
        break;
    }
}

/* Runs until no event is left. */
static void run_until_quiet(struct sim *s)
{
    uint64_t stuck = 0;
    for (;;) {
        bool touched[MAX_HOSTS] = {false};
        struct timed ev;
        uint64_t t = next_moment(s);
        if (t == NEVER) {
            return;
        }
        stuck = t > s->now ? 0 : stuck + 1;
        s->now = t > s->now ? t : s->now;
        sim_require(s, stuck < STUCK_STEPS, "time stands still: a deadline passes and nothing comes of it");
        sim_require(s, s->now <= s->sc.limit_ns, "no end after %llu ms", (unsigned long long)(s->sc.limit_ns / MS));
        sim_require(s, ++s->steps < MAX_STEPS, "no end after %u steps", MAX_STEPS);
        while (evq_pop(&s->events, s->now, &ev)) {
            dispatch(s, &ev, touched);
        }
        for (int k = 0; k < s->sc.nhosts; k++) {
            int i = (k + (int)s->steps) % s->sc.nhosts;
            if (touched[i] || engine_deadline(s->host[i].e) <= s->now) {
                host_step(&s->host[i]);
            }
        }
        check_step(s);
    }
}

static void close_ends(struct sim *s)
{
    s->closing = true;
    for (int i = 0; i < s->sc.nends; i++) {
        uint64_t at = s->now + prng_range(&s->rng, 0, 2);
        evq_push(&s->events, (struct timed){.at = at, .kind = EV_STEP, .n = i, .v = STEP_CLOSE});
    }
    s->sc.limit_ns += S_NS;
    run_until_quiet(s);
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        sim_require(s, e->closed || ((!has_rq(e) || e->rdone == e->offered) && e->sdone == e->nops),
                    "end %d: %d of %d receives flushed", i, e->rdone, e->offered);
    }
}

static void count(struct sim *s, const struct engine_counters *c)
{
#define X(name, text) s->totals.counters.name += c->name;
    ENGINE_COUNTERS(X)
#undef X
}

/* Everything goes, in an order from chance, and nothing is left. */
static void destroy(struct sim *s)
{
    pools_check_end(s);
    pools_destroy(s, true);
    dgram_destroy(s);
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        struct engine *en = s->host[e->host].e;
        uint32_t keys[] = {e->cells.key, e->key_other_pd, e->key_no_access};
        for (int k = 0; k < REG_COUNT; k++) {
            shape_drop(e, &e->reg[k]);
        }
        bool first = prng_chance(&s->rng, 500);
        windows_destroy(e);
        for (int k = 0; first && k < REG_COUNT; k++) {
            sim_require(s, mr_deregister(en, e->reg[k].key) == 0, "end %d: mr_deregister", i);
        }
        if (e->qp) {
            qp_destroy(e->qp);
        }
        e->qp = NULL;
        sim_require(s, qp_find(en, e->qpn) == NULL, "end %d: found after qp_destroy", i);
        for (int k = 0; k < REG_COUNT; k++) {
            sim_require(s, first || mr_deregister(en, e->reg[k].key) == 0, "end %d: mr_deregister", i);
            sim_require(s, mr_deregister(en, e->reg[k].key2) == 0, "end %d: mr_deregister", i);
        }
        sim_require(s, e->key_fleeting_free || mr_deregister(en, e->key_fleeting) == 0, "end %d: mr_deregister", i);
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            sim_require(s, mr_deregister(en, keys[k]) == 0, "end %d: mr_deregister", i);
        }
    }
    pools_destroy(s, false);
    for (int i = 0; i < s->sc.nhosts; i++) {
        struct host *h = &s->host[i];
        struct event ev;
        sim_require(s, engine_deadline(h->e) == NEVER, "host %d: a deadline without QPs", i);
        sim_require(s, !engine_peek_completion(h->e) && !engine_pop_event(h->e, &ev), "host %d: results without QPs",
                    i);
        count(s, engine_counters(h->e));
    }
}

int sim_run(struct sim *s)
{
    volatile int result = 0;
    if (setjmp(s->fail_to) != 0) {
        result = -1;
    } else {
        build(s);
        net_init(&s->net, &s->events, &s->sc.net, s->sc.seed ^ 0x6e6574);
        run_until_quiet(s);
        check_end(s);
        counters_check(s);
        close_ends(s);
        counters_check(s);
        oracle_final(s);
        destroy(s);
    }
    build_free(s);
    return result;
}
