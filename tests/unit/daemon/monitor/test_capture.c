// SPDX-License-Identifier: BSD-2-Clause
/* The capture ring: its contents, the packets it drops, its filters, and a client that writes invalid values. */
#include <criterion/criterion.h>
#include <errno.h>

#include "daemon/monitor/capture.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/pkt.h"

#define RING PM_CAPTURE_RING_MIN

struct reader { /* the client's side */
    struct capture *capture;
    struct pm_capture_page *page;
    const uint8_t *ring;
    uint64_t tail;
};

static struct fixture f;
static uint8_t packet[5000];

static struct pm_capture_req both(void)
{
    return (struct pm_capture_req){.flags = PM_CAPTURE_IN | PM_CAPTURE_OUT, .ring_bytes = RING};
}

static void start(struct reader *r, const struct pm_capture_req *rq)
{
    f.rp.fds = 0;
    r->capture = capture_create(f.device, rq, &f.rp);
    cr_assert_not_null(r->capture);
    r->page = fixture_map(&f, PM_CAPTURE_RING + rq->ring_bytes);
    r->ring = (uint8_t *)r->page + PM_CAPTURE_RING;
    r->tail = 0;
    capture_attach(r->capture);
}

static void end(struct reader *r)
{
    capture_detach(r->capture);
    capture_destroy(r->capture);
    munmap(r->page, PM_CAPTURE_RING + RING);
}

static const struct pm_capture_record *next(struct reader *r)
{
    for (;;) {
        const struct pm_capture_record *c = (const void *)(r->ring + (r->tail & (RING - 1)));

        if (r->tail == r->page->head)
            return NULL;
        cr_assert_eq(c->size % 8, 0);
        cr_assert_leq((r->tail & (RING - 1)) + c->size, RING, "a record goes across the end");
        if (!(c->flags & PM_RECORD_SKIP))
            return c;
        r->tail += c->size;
    }
}

static void done(struct reader *r, const struct pm_capture_record *c)
{
    r->tail += c->size;
    atomic_store(&r->page->tail, r->tail);
}

/* A packet with this opcode, for this QP, from 192.0.2.src. All its other bytes have one value. */
static void receive(uint8_t opcode, uint32_t qpn, uint8_t src, uint8_t fill, uint32_t len)
{
    struct rx_meta meta = {.src_gid = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = src}};

    memcpy(meta.dst_gid, f.device->gid, 16);
    memset(packet, fill, len);
    packet[0] = opcode;
    packet[5] = (uint8_t)(qpn >> 16);
    packet[6] = (uint8_t)(qpn >> 8);
    packet[7] = (uint8_t)qpn;
    capture_received(f.device, &meta, 4791, 3, packet, len);
}

TestSuite(capture, .timeout = 60);

Test(capture, overflow_counts)
{
    struct pm_capture_req rq = both();
    const struct pm_capture_record *c;
    struct reader r;
    unsigned n = 0;

    cr_assert(fixture_start(&f));
    cr_assert_not(capture_on(f.device));
    start(&r, &rq);
    cr_assert(capture_on(f.device));
    for (unsigned i = 0; i < 200; i++)
        receive(4, 17, 1, (uint8_t)i, 904); /* 1000 bytes with the record's header */
    cr_assert_eq(r.page->packets, 200);
    cr_assert_eq(r.page->dropped, 200 - RING / 1000);
    while ((c = next(&r)) != NULL) { /* the oldest packets are complete */
        const uint8_t *p = (const uint8_t *)(c + 1);

        cr_assert_eq(c->len, 904);
        cr_assert_eq(c->orig_len, 904);
        cr_assert_eq(c->ip_id, 3);
        cr_assert_eq(p[0], 4);
        cr_assert_eq(p[903], n++);
        done(&r, c);
    }
    cr_assert_eq(n, RING / 1000);
    receive(4, 17, 1, 77, 904);
    c = next(&r);
    cr_assert_not_null(c, "there is room again");
    cr_assert_eq(((const uint8_t *)(c + 1))[903], 77);
    end(&r);
    cr_assert_not(capture_on(f.device));
    fixture_end(&f);
}

Test(capture, the_ring_wraps)
{
    struct pm_capture_req rq = both();
    struct reader r;
    uint32_t got = 0, sent = 0;

    cr_assert(fixture_start(&f));
    start(&r, &rq);
    while (sent < 20000) {
        const struct pm_capture_record *c;

        for (unsigned i = 0; i < 1 + sent % 13; i++, sent++)
            receive(4, 17, 1, (uint8_t)sent, 16 + sent * 7919 % 4200);
        while ((c = next(&r)) != NULL) {
            const uint8_t *p = (const uint8_t *)(c + 1);

            cr_assert_eq(c->len, 16 + got * 7919 % 4200);
            cr_assert_eq(p[8], (uint8_t)got);
            cr_assert_eq(p[c->len - 1], (uint8_t)got);
            got++;
            done(&r, c);
        }
        cr_assert_eq(got, sent);
    }
    cr_assert_eq(r.page->dropped, 0);
    end(&r);
    fixture_end(&f);
}

Test(capture, hostile_tail)
{
    static const int64_t lies[] = {1, 8, -1, RING, 2 * RING, INT64_MAX, INT64_MIN, -8};
    struct pm_capture_req rq = both();
    struct reader r;

    cr_assert(fixture_start(&f));
    start(&r, &rq);
    for (unsigned i = 0; i < 20000; i++) {
        /* With wrong values here the client may lose packets, but nothing else may happen. Sanitizers and the guard
         * below check that. */
        atomic_store(&r.page->tail, r.page->head + (uint64_t)lies[i % 8] * (1 + i % 3));
        receive(4, 17, 1, (uint8_t)i, 16 + i % 4200);
        cr_assert_leq(r.capture->dropped, r.capture->packets);
    }
    cr_assert_eq(r.capture->packets, 20000);
    cr_assert_eq(r.capture->head % 8, 0);
    atomic_store(&r.page->head, 12345);
    receive(4, 17, 1, 0, 16);
    cr_assert_neq(r.page->head, 12345 + 112, "the daemon has a count of its own");
    end(&r);
    fixture_end(&f);
}

static unsigned passes(const struct pm_capture_req *rq, uint8_t opcode, uint32_t qpn, uint8_t src)
{
    struct reader r;
    unsigned n;

    start(&r, rq);
    receive(opcode, qpn, src, 9, 64);
    n = next(&r) != NULL;
    cr_assert_eq(r.page->packets, n, "what does not pass does not count");
    end(&r);
    return n;
}

Test(capture, filters)
{
    struct pm_capture_req rq = both();
    struct reader r;

    cr_assert(fixture_start(&f));
    cr_expect_eq(passes(&rq, 4, 17, 1), 1);
    rq.qpn = 17;
    cr_expect_eq(passes(&rq, 4, 17, 1), 1);
    cr_expect_eq(passes(&rq, 4, 18, 1), 0);
    rq = both();
    rq.opcodes[0x81 / 64] = 1ull << 0x81 % 64;
    cr_expect_eq(passes(&rq, 0x81, 17, 1), 1);
    cr_expect_eq(passes(&rq, 0x01, 17, 1), 0);
    rq = both();
    rq.has_peer = 1;
    memcpy(rq.peer, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 5}, 16);
    cr_expect_eq(passes(&rq, 4, 17, 5), 1);
    cr_expect_eq(passes(&rq, 4, 17, 6), 0);
    rq = both();
    rq.flags = PM_CAPTURE_OUT;
    cr_expect_eq(passes(&rq, 4, 17, 1), 0, "it came in");
    rq = both();
    rq.snaplen = 20;
    start(&r, &rq);
    receive(4, 17, 1, 9, 500);
    cr_assert_not_null(next(&r));
    cr_expect_eq(next(&r)->len, 20);
    cr_expect_eq(next(&r)->orig_len, 500);
    end(&r);
    fixture_end(&f);
}

Test(capture, two_at_once)
{
    struct pm_capture_req rq = both();
    struct reader a, b;

    cr_assert(fixture_start(&f));
    start(&a, &rq);
    rq.qpn = 99;
    start(&b, &rq);
    receive(4, 99, 1, 1, 64);
    receive(4, 17, 1, 1, 64);
    cr_expect_eq(a.page->packets, 2);
    cr_expect_eq(b.page->packets, 1);
    end(&a);
    receive(4, 99, 1, 1, 64);
    cr_expect_eq(b.page->packets, 2);
    end(&b);
    fixture_end(&f);
}

Test(capture, bad_requests)
{
    static const uint32_t sizes[] = {0, 1, RING - 1, RING / 2, RING + 8, 3 * RING, UINT32_MAX, 1u << 31};
    struct pm_capture_req rq = both();

    cr_assert(fixture_start(&f));
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rq.ring_bytes = sizes[i];
        cr_expect_null(capture_create(f.device, &rq, &f.rp), "%u", sizes[i]);
        cr_expect_eq(f.rp.status, -EINVAL);
    }
    rq = both();
    rq.flags = PM_CAPTURE_BEFORE;
    cr_expect_null(capture_create(f.device, &rq, &f.rp));
    fixture_end(&f);
}
