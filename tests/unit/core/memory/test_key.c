// SPDX-License-Identifier: BSD-2-Clause
/* Memory keys: which regions can be registered, and which accesses a key permits to which QP. The test sends the
 * requests itself. */
#include <errno.h>

#include "daemon/core/memory/key.h"
#include "tests/unit/core/core_fixture.h"

static struct fixture fix;

static void setup(void)
{
    fix_init(&fix);
    for (uint32_t i = 0; i < FIX_MEM; i++) {
        fix.bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(keys, .init = setup, .fini = teardown);

#define LW ACCESS_LOCAL_WRITE
#define RW ACCESS_REMOTE_WRITE
#define RR ACCESS_REMOTE_READ
#define RA ACCESS_REMOTE_ATOMIC

/* Bytes 1024 … 2047 of the fixture's memory. Their address in requests begins at 0x5000. */
#define START 1024u
#define LENGTH 1024u
#define IOVA 0x5000u

static struct mr_init region(uint32_t access)
{
    return (struct mr_init){
        .pd = FIX_PD, .space = 1, .va = FIX_VA + START, .iova = IOVA, .length = LENGTH, .access = access};
}

static uint32_t reg(uint32_t access)
{
    struct mr_init init = region(access);
    uint32_t key = 0;
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    return key;
}

/* --- registering ------------------------------------------------------------------------------- */

Test(keys, remote_rights_to_change_need_the_local_one)
{
    for (uint32_t access = 0; access < 32; access++) {
        struct mr_init init = region(access);
        uint32_t key;
        bool legal = (access & LW) || !(access & (RW | RA));
        int err = mr_register(fix.e, &init, &key);
        cr_expect_eq(err, legal ? 0 : -EINVAL, "access %#x: %d", access, err);
        if (err == 0) {
            cr_expect_eq(mr_deregister(fix.e, key), 0);
        }
    }
}

Test(keys, a_domain_and_known_rights_are_needed)
{
    struct mr_init no_pd = {.space = 1, .va = FIX_VA, .iova = FIX_VA, .length = 8};
    struct mr_init unknown = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = 8, .access = 1u << 31};
    struct fixture f;
    uint32_t key = 0;
    fix_init(&f);
    cr_expect_eq(mr_register(f.e, &no_pd, &key), -EINVAL);
    cr_expect_eq(mr_register(f.e, &unknown, &key), -EINVAL);
    fix_fini(&f);
}

Test(keys, ranges_must_not_wrap)
{
    struct mr_init init = region(LW);
    uint32_t key;
    init.va = UINT64_MAX - 100;
    cr_expect_eq(mr_register(fix.e, &init, &key), -EINVAL, "va");
    init = region(LW);
    init.iova = UINT64_MAX - 100;
    cr_expect_eq(mr_register(fix.e, &init, &key), -EINVAL, "iova");
    init = region(LW);
    init.length = 0;
    cr_expect_eq(mr_register(fix.e, &init, &key), 0, "no bytes at all are legal");
}

Test(keys, there_are_as_many_keys_as_configured)
{
    uint32_t key[8], more;
    struct mr_init init = region(LW);
    for (int i = 0; i < 8; i++) {
        key[i] = reg(LW);
        for (int k = 0; k < i; k++) {
            cr_expect_neq(key[i], key[k]);
        }
    }
    cr_expect_eq(mr_register(fix.e, &init, &more), -ENOMEM);
    cr_expect_eq(mr_deregister(fix.e, key[5]), 0);
    cr_expect_eq(mr_register(fix.e, &init, &more), 0);
    cr_expect_neq(more, key[5], "a key does not come back at once");
}

Test(keys, unknown_keys_are_refused)
{
    struct mr_init init = region(LW);
    uint32_t key = reg(LW);
    for (int bit = 0; bit < 32; bit++) {
        cr_expect_eq(mr_deregister(fix.e, key ^ (1u << bit)), -ENOENT, "bit %d", bit);
    }
    cr_expect_eq(mr_deregister(fix.e, 0), -ENOENT);
    cr_expect_eq(mr_reregister(fix.e, key ^ 1, &init), -ENOENT);
    cr_expect_eq(mr_deregister(fix.e, key), 0);
    cr_expect_eq(mr_deregister(fix.e, key), -ENOENT, "twice");
    cr_expect_eq(mr_reregister(fix.e, key, &init), -ENOENT);
}

/* Tags of one index, which is registered again and again. */
static void tags_of(const struct permute_secret *secret, uint8_t tag[256])
{
    static struct mkey entries[2];
    struct key_table t;
    memset(entries, 0, sizeof(entries));
    key_table_init(&t, entries, 1, secret);
    for (int i = 0; i < 256; i++) {
        struct mr_init init = region(LW);
        uint32_t key = 0;
        cr_assert_eq(key_register(&t, &init, &key), 0);
        tag[i] = (uint8_t)key;
        cr_assert_eq(key_deregister(&t, key), 0);
    }
}

Test(keys, a_secret_hides_the_next_tag)
{
    const struct permute_secret a = {{1, 2}}, b = {{1, 3}};
    uint8_t tag[256], other[256], seen[256] = {0};
    int same = 0, next = 0;
    tags_of(&a, tag);
    tags_of(&b, other);
    for (int i = 0; i < 256; i++) {
        cr_expect_eq(seen[tag[i]]++, 0, "a tag comes back before all others were used");
        same += tag[i] == other[i];
        next += i > 0 && tag[i] == (uint8_t)(tag[i - 1] + 1);
    }
    cr_expect(same < 16 && next < 16, "%d tags as with the other secret, %d that follow their predecessor", same, next);
}

/* --- what a key allows ------------------------------------------------------------------------- */

enum kind {
    WRITE,
    READ,
    ATOMIC,
};

static struct qp *target;

static void make_target(void)
{
    target = fix_qp(&fix);
    fix_bring(target, QPS_RTR);
}

/* Sends one request for len bytes at address va. Returns the syndrome of the answer, or 0 if the request was
 * executed. */
static uint8_t ask(enum kind kind, uint32_t key, uint64_t va, uint32_t len)
{
    static const uint8_t opcodes[] = {OP_WRITE_ONLY, OP_READ_REQUEST, OP_FETCH_ADD};
    static uint8_t out[16384], data[256];
    struct pkt a;
    struct pkt p = {.opcode = opcodes[kind], .psn = 100, .ackreq = true, .dest_qpn = qp_number(target)};
    memset(data, 0x5a, sizeof data);
    p.reth.va = p.atomic.va = va;
    p.reth.rkey = p.atomic.rkey = key;
    p.reth.length = len;
    p.atomic.swap_add = 1;
    if (kind == WRITE) {
        p.payload = data;
        p.payload_len = len;
        p.pad = (uint8_t)pkt_pad(len);
    }
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0, "no answer");
    if (a.opcode == OP_READ_RESP_ONLY) {
        cr_expect_eq(a.payload_len, len);
        cr_expect(len == 0 || memcmp(a.payload, fix.bytes + START + (va - IOVA), len) == 0, "data of the READ");
    }
    return (a.aeth.syndrome & AETH_KIND_MASK) == AETH_ACK ? 0 : a.aeth.syndrome;
}

/* Does the same with a new QP, because a refused request ends the connection. */
static uint8_t ask_once(enum kind kind, uint32_t key, uint64_t va, uint32_t len)
{
    struct event ev;
    make_target();
    uint8_t syndrome = ask(kind, key, va, len);
    cr_expect_eq(qp_state(target), syndrome ? QPS_ERR : QPS_RTR);
    bool told = false;
    while (engine_pop_event(fix.e, &ev)) {
        told |= ev.type == (syndrome == NAK_REMOTE_ACCESS ? EVENT_QP_ACCESS_ERR : EVENT_QP_REQ_ERR);
    }
    cr_expect_eq(told, syndrome != 0);
    qp_destroy(target);
    fix.nqpmem--;
    free(fix.qpmem[fix.nqpmem]);
    return syndrome;
}

Test(keys, each_right_allows_its_own_operation_only)
{
    static const uint32_t right[] = {[WRITE] = RW, [READ] = RR, [ATOMIC] = RA};
    for (uint32_t access = 0; access < 16; access++) {
        if (!(access & LW) && (access & (RW | RA))) {
            continue;
        }
        uint32_t key = reg(access);
        for (int kind = WRITE; kind <= ATOMIC; kind++) {
            uint8_t want = access & right[kind] ? 0 : NAK_REMOTE_ACCESS;
            cr_expect_eq(ask_once((enum kind)kind, key, IOVA, 8), want, "access %#x, operation %d", access, kind);
        }
        cr_expect_eq(mr_deregister(fix.e, key), 0);
    }
}

Test(keys, bounds_are_exact)
{
    uint32_t key = reg(LW | RW | RR | RA);
    static const struct {
        uint64_t off;
        uint32_t len;
        bool ok;
    } rows[] = {
        {0, 1, true},
        {0, 256, true},
        {LENGTH - 1, 1, true},
        {LENGTH - 256, 256, true},
        {LENGTH - 256, 255, true},
        {LENGTH, 1, false},
        {LENGTH - 1, 2, false},
        {LENGTH - 255, 256, false},
        {(uint64_t)-1, 1, false},
        {(uint64_t)-1, 2, false},
        {(uint64_t)-8, 256, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int kind = WRITE; kind <= READ; kind++) {
            unsigned touched = fix.writes + fix.reads;
            uint8_t s = ask_once((enum kind)kind, key, IOVA + rows[i].off, rows[i].len);
            cr_expect_eq(s, rows[i].ok ? 0 : NAK_REMOTE_ACCESS, "row %zu, operation %d: %#x", i, kind, s);
            cr_expect_eq(fix.writes + fix.reads - touched, rows[i].ok ? 1u : 0u, "row %zu: upcalls", i);
        }
    }
}

Test(keys, addresses_that_wrap_are_out_of_range)
{
    uint32_t key = reg(LW | RW | RR);
    cr_expect_eq(ask_once(WRITE, key, UINT64_MAX, 2), NAK_REMOTE_ACCESS);
    cr_expect_eq(ask_once(READ, key, UINT64_MAX - 100, 256), NAK_REMOTE_ACCESS);
}

Test(keys, no_bytes_need_no_key)
{
    cr_expect_eq(ask_once(WRITE, 0xdeadbeef, 123, 0), 0);
    cr_expect_eq(ask_once(READ, 0xdeadbeef, 123, 0), 0);
}

Test(keys, atomics_are_aligned)
{
    uint32_t key = reg(LW | RA);
    for (uint64_t off = 0; off < 16; off++) {
        cr_expect_eq(ask_once(ATOMIC, key, IOVA + off, 8), off % 8 ? NAK_INVALID_REQUEST : 0, "offset %d", (int)off);
    }
    cr_expect_eq(fix.atomics, 2u);
    cr_expect_eq(ask_once(ATOMIC, key, IOVA + LENGTH - 8, 8), 0);
    cr_expect_eq(ask_once(ATOMIC, key, IOVA + LENGTH, 8), NAK_REMOTE_ACCESS);
}

Test(keys, keys_belong_to_a_protection_domain)
{
    struct mr_init init = region(LW | RW | RR);
    uint32_t key;
    init.pd = FIX_PD + 1;
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    cr_expect_eq(ask_once(READ, key, IOVA, 8), NAK_REMOTE_ACCESS);
    init.pd = FIX_PD;
    cr_assert_eq(mr_reregister(fix.e, key, &init), 0);
    cr_expect_eq(ask_once(READ, key, IOVA, 8), 0);
}

Test(keys, deregistered_keys_open_nothing)
{
    uint32_t key = reg(LW | RW | RR);
    cr_expect_eq(ask_once(READ, key, IOVA, 8), 0);
    cr_expect_eq(mr_deregister(fix.e, key), 0);
    cr_expect_eq(ask_once(READ, key, IOVA, 8), NAK_REMOTE_ACCESS);
    uint32_t again = reg(LW | RW | RR);
    cr_expect_eq(ask_once(READ, key, IOVA, 8), NAK_REMOTE_ACCESS, "even if its place is taken");
    cr_expect_eq(ask_once(READ, again, IOVA, 8), 0);
}

Test(keys, reregistering_is_all_or_nothing)
{
    uint32_t key = reg(LW | RR);
    struct mr_init init = region(RW); /* the access flags contradict each other */
    cr_expect_eq(mr_reregister(fix.e, key, &init), -EINVAL);
    cr_expect_eq(ask_once(READ, key, IOVA, 8), 0, "as before");
    cr_expect_eq(ask_once(WRITE, key, IOVA, 8), NAK_REMOTE_ACCESS);
    init = region(LW | RW);
    init.iova = 0x9000;
    cr_expect_eq(mr_reregister(fix.e, key, &init), 0);
    cr_expect_eq(ask_once(WRITE, key, 0x9000, 8), 0);
    cr_expect_eq(ask_once(WRITE, key, IOVA, 8), NAK_REMOTE_ACCESS);
    cr_expect_eq(ask_once(READ, key, 0x9000, 8), NAK_REMOTE_ACCESS);
}

Test(keys, the_access_flags_of_the_qp_are_checked_first)
{
    uint32_t key = reg(LW | RW | RR | RA);
    static const uint32_t right[] = {[WRITE] = RW, [READ] = RR, [ATOMIC] = RA};
    for (int kind = WRITE; kind <= ATOMIC; kind++) {
        struct qp_attr a = fix_attr();
        make_target();
        a.access = (RW | RR | RA) & ~right[kind];
        a.state = QPS_RTS;
        cr_assert_eq(qp_modify(target, &a, QPA_STATE | fix_required(QPS_RTR, QPS_RTS) | QPA_ACCESS_FLAGS, NULL), 0);
        cr_expect_eq(ask((enum kind)kind, key, IOVA, 8), NAK_INVALID_REQUEST, "operation %d", kind);
        qp_destroy(target);
        fix.nqpmem--;
        free(fix.qpmem[fix.nqpmem]);
    }
}

Test(keys, a_write_is_checked_completely_before_its_first_byte)
{
    static uint8_t out[16384], data[256];
    uint32_t key = reg(LW | RW);
    struct pkt a;
    make_target();
    struct pkt p = {.opcode = OP_WRITE_FIRST,
                    .psn = 100,
                    .ackreq = true,
                    .dest_qpn = qp_number(target),
                    .payload = data,
                    .payload_len = 256,
                    .reth = {.va = IOVA + LENGTH - 512, .rkey = key, .length = 513}};
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.aeth.syndrome, NAK_REMOTE_ACCESS);
    cr_expect_eq(fix.writes, 0u);
}

Test(keys, a_write_stops_when_its_key_is_deregistered)
{
    static uint8_t out[16384], data[256];
    uint32_t key = reg(LW | RW);
    struct pkt a;
    make_target();
    struct pkt p = {.opcode = OP_WRITE_FIRST,
                    .psn = 100,
                    .ackreq = true,
                    .dest_qpn = qp_number(target),
                    .payload = data,
                    .payload_len = 256,
                    .reth = {.va = IOVA, .rkey = key, .length = 512}};
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.aeth.syndrome & AETH_KIND_MASK, AETH_ACK);
    cr_expect_eq(mr_deregister(fix.e, key), 0);
    p.opcode = OP_WRITE_LAST;
    p.psn = 101;
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.aeth.syndrome, NAK_REMOTE_ACCESS);
    cr_expect_eq(a.psn, 101u);
    cr_expect_eq(fix.writes, 1u);
}
