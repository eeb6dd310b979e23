// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/connections/cms.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "wire/gid.h"

#define US 1000ull
#define MS 1000000ull
#define MAX_STEPS 200000u
#define MAX_IDS 256u

_Noreturn void cms_fail(struct cms *s, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(s->failure, sizeof s->failure, "at %llu ms: ", (unsigned long long)(s->now / MS));
    va_start(ap, fmt);
    vsnprintf(s->failure + n, sizeof s->failure - (size_t)n, fmt, ap);
    va_end(ap);
    longjmp(s->fail_to, 1);
}

void cms_say(struct cms *s, const char *fmt, ...)
{
    va_list ap;
    if (!s->verbose)
        return;
    printf("%10.3f ms  ", (double)s->now / 1e6);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

/* --- hosts -------------------------------------------------------------------------------------- */

static void listen_on(struct cms *s, int host)
{
    static const uint16_t space[CMS_LISTENERS] = {CM_PS_TCP, CM_PS_UDP, CM_PS_IB};
    static const uint8_t type[CMS_LISTENERS] = {QPT_RC, QPT_UD, 0};
    struct cms_host *h = &s->host[host];
    for (int i = 0; i < CMS_LISTENERS; i++) {
        struct cm_addr a = h->addr;
        a.port = CMS_PORT;
        cms_require(s, cm_id_create(h->cm, space[i], type[i], h, &h->listener[i]) == 0, "no listener");
        cms_require(s, cm_bind(h->listener[i], &a, &h->route) == 0, "a port of a new host is in use");
        cms_require(s, cm_listen(h->listener[i], (uint32_t)prng_pick(&s->rng, 1, 2, 100)) == 0, "can't listen");
    }
}

void cms_boot(struct cms *s, int host)
{
    struct cms_host *h = &s->host[host];
    struct cm_config cfg;
    cm_config_defaults(&cfg);
    cfg.max_ids = MAX_IDS;
    cfg.secret = (struct permute_secret){{prng_next(&s->rng), prng_next(&s->rng)}};
    free(h->mem);
    h->mem = calloc(1, cm_size(&cfg));
    if (!h->mem)
        abort();
    h->cm = cm_init(h->mem, &cfg);
    gid_from_v4(h->addr.gid, (const uint8_t[4]){10, 0, 0, (uint8_t)(1 + host)});
    h->route = (struct cm_route){.path_mtu = 3, .node_guid = 0x100 + (unsigned)host, .hop_limit = 64};
    h->lives++;
    listen_on(s, host);
}

static void make(struct cms *s)
{
    struct prng *r = &s->rng;
    s->hosts = (int)prng_range(r, 1, CMS_HOSTS);
    s->loss = (uint32_t)prng_pick(r, 0, 0, 20, 100, 200);
    s->dup = (uint32_t)prng_pick(r, 0, 0, 50, 200);
    s->late = (uint32_t)prng_pick(r, 0, 0, 50, 200);
    s->delay = prng_pick(r, 0, 10 * US, 1 * MS, 100 * MS);
    s->late_by = prng_pick(r, 1 * MS, 300 * MS, 1200 * MS); /* shorter than the time wait */
    s->next_qpn = 100;
    for (int i = 0; i < s->hosts; i++)
        cms_boot(s, i);
    cms_programs(s);
}

static void unmake(struct cms *s)
{
    struct timed ev;
    while (evq_pop(&s->events, UINT64_MAX, &ev))
        if (ev.kind == EV_PACKET)
            free(ev.p);
    free(s->events.heap);
    for (int i = 0; i < s->hosts; i++)
        free(s->host[i].mem);
}

/* --- network ------------------------------------------------------------------------------------ */

static int host_of(const struct cms *s, const uint8_t gid[16])
{
    for (int i = 0; i < s->hosts; i++)
        if (memcmp(s->host[i].addr.gid, gid, 16) == 0)
            return i;
    return -1;
}

static void fly(struct cms *s, const struct cm_datagram *d, int to)
{
    struct cm_datagram *copy = malloc(sizeof *copy);
    uint64_t at = s->now + s->delay;
    if (!copy)
        abort();
    *copy = *d;
    memcpy(copy->local_gid, d->remote_gid, 16);
    memcpy(copy->remote_gid, d->local_gid, 16);
    if (prng_chance(&s->rng, s->late))
        at += prng_range(&s->rng, 0, s->late_by);
    evq_push(&s->events, (struct timed){.at = at, .kind = EV_PACKET, .n = to, .p = copy});
    s->in_flight++;
}

static void send(struct cms *s, const struct cm_datagram *d)
{
    struct cm_msg m;
    int to = host_of(s, d->remote_gid);
    cms_require(s, to >= 0, "a datagram to nobody");
    cms_require(s, cm_msg_decode(d->mad, &m) == CM_DECODE_OK, "a message that nobody can read");
    for (unsigned i = 0; i < MAD_LEN; i++)
        s->trace = (s->trace ^ d->mad[i]) * 0x100000001b3u;
    s->trace ^= s->now;
    bool lost = prng_chance(&s->rng, s->loss);
    cms_say(s, "%d -> %d  %s%s", host_of(s, d->local_gid), to, cm_attribute_name(m.attribute), lost ? "  (lost)" : "");
    if (lost)
        return;
    fly(s, d, to);
    if (prng_chance(&s->rng, s->dup))
        fly(s, d, to);
}

/* --- time --------------------------------------------------------------------------------------- */

void cms_later(struct cms *s, int end, int v, uint64_t after)
{
    evq_push(&s->events, (struct timed){.at = s->now + after, .kind = EV_STEP, .n = end, .v = v});
}

static void settle(struct cms *s)
{
    struct cm_datagram d;
    struct cm_event ev;
    for (int i = 0; i < s->hosts; i++) {
        while (cm_pop_event(s->host[i].cm, &ev))
            cms_event(s, i, &ev);
        while (cm_pop_datagram(s->host[i].cm, &d))
            send(s, &d);
    }
}

static void run_until_quiet(struct cms *s)
{
    for (;;) {
        struct timed ev;
        uint64_t t = evq_next(&s->events);
        for (int i = 0; i < s->hosts; i++) {
            uint64_t due = cm_deadline(s->host[i].cm);
            t = due < t ? due : t;
        }
        if (t == NEVER)
            return;
        s->now = t > s->now ? t : s->now;
        cms_require(s, ++s->steps < MAX_STEPS, "no end");
        for (int i = 0; i < s->hosts; i++)
            if (cm_deadline(s->host[i].cm) <= s->now)
                cm_expire(s->host[i].cm, s->now);
        settle(s);
        if (!evq_pop(&s->events, s->now, &ev))
            continue;
        if (ev.kind == EV_PACKET) {
            s->in_flight--;
            cm_rx(s->host[ev.n].cm, ev.p, &s->host[ev.n].route, s->now);
            free(ev.p);
        } else {
            cms_step(s, ev.n, (enum cms_step)ev.v);
        }
        settle(s);
    }
}

static void run(struct cms *s)
{
    if (setjmp(s->fail_to))
        return;
    make(s);
    run_until_quiet(s);
    cms_check_quiet(s);
    s->closing = true;
    for (int i = 0; i < s->ends; i++)
        cms_destroy(s, &s->end[i]);
    for (int i = 0; i < s->hosts; i++)
        cms_close(s, i);
    settle(s);
    run_until_quiet(s);
    cms_check_end(s);
}

int cms_run(struct cms *s, uint64_t seed, bool verbose)
{
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->verbose = verbose;
    s->now = 1000 * MS;
    prng_seed(&s->rng, seed);
    run(s);
    unmake(s);
    return s->failure[0] ? -1 : 0;
}
