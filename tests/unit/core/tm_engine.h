// SPDX-License-Identifier: BSD-2-Clause
/* An engine whose QPs have an SRQ that matches tags, and a peer that forges packets. The path MTU is 256. */
#ifndef PUMICE_TESTS_UNIT_CORE_TM_ENGINE_H
#define PUMICE_TESTS_UNIT_CORE_TM_ENGINE_H

#include "daemon/core/tm/tag_list.h"
#include "tests/unit/core/core_fixture.h"

#define TM_PD 9u
#define TM_QPS 3
#define TM_BUFFERS 12u
#define BUFFER_LEN 600u /* length of an untagged buffer */
#define TAG_VA (FIX_VA + 4096) /* tagged buffers: 512 bytes each, by slot */
#define EXACT UINT64_MAX
#define ACKED (AETH_ACK | AETH_NO_CREDITS)
#define SILENCE 0xffu
#define MAX_OUT 128

static struct fixture fix;
static struct tag_list *tm;
static struct srq *srq;
static void *srqmem, *tmmem;
static struct qp *qp[TM_QPS];
static uint32_t psn[TM_QPS]; /* the peer's next PSN, by QP */
static uint32_t key; /* of the whole memory, in the SRQ's protection domain */
static int srq_owner, srq_cq, qp_cq;
static uint8_t wire[65536];
static struct pkt out[MAX_OUT]; /* the packets that the engine sent last */
static uint32_t num_out;

static inline struct qp *tm_qp(uint32_t max_send_wr, struct srq *of)
{
    struct qp_init init = {.type = QPT_RC,
                           .pd = FIX_PD,
                           .srq = of,
                           .sq_sig_all = true,
                           .caps = {max_send_wr, 0, max_send_wr ? 1 : 0, 0, 0},
                           .send_cq = &qp_cq,
                           .recv_cq = &qp_cq,
                           .owner = &fix};
    struct qp *q = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &q), 0);
    return q;
}

static inline void tm_setup_with(const struct tm_params *p, uint32_t max_send_wr)
{
    fix_init(&fix);
    struct mr_init mr = {.pd = TM_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ};
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    tmmem = fix_zalloc(tm_size(p));
    tm = tm_init(tmmem, p);
    struct srq_init init = {.pd = TM_PD, .max_wr = 64, .max_sge = 1, .cq = &srq_cq, .owner = &srq_owner, .tm = tm};
    srqmem = fix_zalloc(srq_size(64, 1));
    cr_assert_eq(srq_create(fix.e, &init, srqmem, &srq), 0);
    for (int i = 0; i < TM_QPS; i++) {
        qp[i] = tm_qp(max_send_wr, srq);
        fix_bring(qp[i], QPS_RTS);
        psn[i] = 100;
    }
}
static inline void tm_setup(void)
{
    struct tm_params p = {.max_num_tags = 256, .max_ops = 64, .trace_slots = 256};
    tm_setup_with(&p, 0);
}
static inline void tm_teardown(void)
{
    fix_fini(&fix);
    free(srqmem);
    free(tmmem);
}

static inline struct tm_info tm_state(void)
{
    struct tm_info info;
    tm_info(tm, &info);
    return info;
}

/* --- the program ------------------------------------------------------------------------------- */

static inline void post_buffers(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct recv_wr wr = {.wr_id = 5000 + i, .slot = i, .num_sge = 1};
        struct sge sge = {FIX_VA, BUFFER_LEN, key};
        cr_assert_eq(srq_post_recv(srq, &wr, &sge), 0);
    }
}

/* A tagged buffer of len bytes; its recv_wr_id is 7000 + slot. */
static inline void add_with(uint32_t handle, uint64_t tag, uint32_t len, uint32_t lkey)
{
    uint64_t at = TAG_VA + 512 * (TM_SLOT(handle) % 8);
    /* In three parts, which the engine must join. */
    uint32_t a = len / 3, b = len / 2 - a;
    struct sge sge[3] = {{at, a, lkey}, {at + a, b, lkey}, {at + a + b, len - a - b, lkey}};
    struct tm_op op = {.opcode = TM_ADD,
                       .handle = handle,
                       .tag = tag,
                       .mask = EXACT,
                       .recv_wr_id = 7000 + TM_SLOT(handle),
                       .num_sge = 3,
                       .sge = sge,
                       .flags = TM_OP_SYNC,
                       .unexpected_cnt = tm_state().hw_cnt};
    cr_assert_eq(srq_post_op(srq, &op, fix.now), 0);
}
static inline void add(uint32_t handle, uint64_t tag, uint32_t len)
{
    add_with(handle, tag, len, key);
}

struct expected {
    uint8_t of, status, opcode, flags;
    uint32_t slot, byte_len;
};
static inline struct completion expect_wc(int i, struct expected want, int line)
{
    cr_assert_not_null(engine_peek_completion(fix.e), "line %d: a completion", line);
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.of, want.of, "line %d: of %u", line, c.of);
    cr_expect_eq(c.status, want.status, "line %d: status %u", line, c.status);
    cr_expect_eq(c.opcode, want.opcode, "line %d: opcode %u", line, c.opcode);
    cr_expect_eq(c.flags, want.flags, "line %d: flags %x", line, c.flags);
    cr_expect_eq(c.slot, want.slot, "line %d: slot %u", line, c.slot);
    cr_expect_eq(c.byte_len, want.byte_len, "line %d: byte_len %u", line, c.byte_len);
    cr_expect_eq(c.cq, &srq_cq, "line %d: the SRQ's CQ", line);
    cr_expect_eq(c.srq_owner, &srq_owner, "line %d", line);
    if (want.of == OF_TM_ENTRY)
        cr_expect_eq(c.wr_id, 7000 + want.slot, "line %d: wr_id %u", line, (unsigned)c.wr_id);
    if (want.of == OF_TM_BUFFER || want.of == OF_TM_UNEXPECTED)
        cr_expect_eq(c.wr_id, 5000 + want.slot, "line %d: wr_id %u", line, (unsigned)c.wr_id);
    if (i >= 0)
        cr_expect_eq(c.qpn, qp_number(qp[i]), "line %d", line);
    if (want.flags & WC_TM_MATCH)
        cr_expect_eq(c.tm_priv, 0xabcd0123, "line %d: app_ctx %x", line, c.tm_priv);
    else
        cr_expect(c.tm_tag == 0 && c.tm_priv == 0, "line %d", line);
    return c;
}
#define EXPECT(i, ...) expect_wc(i, (struct expected){__VA_ARGS__}, __LINE__)
#define EXPECT_NOTHING() cr_expect_null(engine_peek_completion(fix.e), "line %d: no completion", __LINE__)
#define BOTH (WC_TM_MATCH | WC_TM_DATA_VALID)

/* --- the peer ---------------------------------------------------------------------------------- */

static inline void turn(void)
{
    num_out = fix_tx(&fix, wire, out, MAX_OUT);
    cr_assert_leq(num_out, MAX_OUT);
}
/* The nth packet with this opcode among those that the engine sent last; NULL: none. */
static inline const struct pkt *sent(uint8_t opcode, unsigned n)
{
    for (uint32_t i = 0; i < num_out; i++)
        if (out[i].opcode == opcode && n-- == 0)
            return &out[i];
    return NULL;
}

/* Gives the engine a packet of a SEND. Returns the syndrome of the ACK or NAK, or SILENCE. */
static inline uint8_t arrive(int i, uint8_t opcode, const uint8_t *bytes, uint32_t len)
{
    struct pkt p = {.opcode = opcode, .psn = psn[i], .payload = bytes, .payload_len = len, .imm = {1, 2, 3, 4}};
    p.dest_qpn = qp_number(qp[i]);
    p.ackreq = !(op_table[opcode].properties & (OP_IS_FIRST | OP_IS_MIDDLE));
    p.solicited = p.ackreq;
    fix_rx(&fix, &p);
    turn();
    const struct pkt *ack = sent(OP_ACK, 0);
    if (!ack || (ack->aeth.syndrome & AETH_KIND_MASK) == AETH_ACK)
        psn[i]++;
    return ack ? ack->aeth.syndrome : SILENCE;
}

/* The bytes of a message: a TMH, then 1, 2, 3 ... */
static inline const uint8_t *message(uint8_t opcode, uint64_t tag)
{
    static uint8_t bytes[2048];
    struct tmh tmh = {.opcode = opcode, .reserved = {7, 8, 9}, .app_ctx = 0xabcd0123, .tag = tag};
    tmh_encode(&tmh, bytes);
    for (uint32_t i = TMH_LEN; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i - TMH_LEN + 1);
    return bytes;
}
static inline const uint8_t *rndv_message(uint64_t tag, uint32_t len)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)message(TMH_RNDV, tag);
    struct rvh rvh = {.va = 0x7777000, .rkey = 0x55aa, .len = len};
    rvh_encode(&rvh, bytes + TMH_LEN);
    return bytes;
}
/* An eager message in one packet, with this much payload. */
static inline uint8_t eager(int i, uint64_t tag, uint32_t payload)
{
    return arrive(i, OP_SEND_ONLY, message(TMH_EAGER, tag), TMH_LEN + payload);
}
static inline uint8_t rndv(int i, uint64_t tag, uint32_t len)
{
    return arrive(i, OP_SEND_ONLY, rndv_message(tag, len), TMH_LEN + RVH_LEN);
}

/* Does the tagged buffer hold 1, 2, 3 ... as in message()? */
static inline bool tagged_data(uint32_t slot, uint32_t len)
{
    const uint8_t *p = fix.bytes + (TAG_VA - FIX_VA) + 512 * slot;
    for (uint32_t n = 0; n < len; n++)
        if (p[n] != (uint8_t)(n + 1))
            return false;
    return p[len] == 0;
}

/* Answers a READ request with 1, 2, 3 ... The packets that the engine then sends are in out. */
static inline void answer_read(int i, const struct pkt *request)
{
    static uint8_t data[2048];
    uint32_t len = request->reth.length, n = (len + 255) / 256, first = request->psn;
    for (uint32_t k = 0; k < sizeof(data); k++)
        data[k] = (uint8_t)(k + 1);
    for (uint32_t k = 0; k < n; k++) {
        uint8_t opcode = n == 1       ? OP_READ_RESP_ONLY
                         : k == 0     ? OP_READ_RESP_FIRST
                         : k + 1 == n ? OP_READ_RESP_LAST
                                      : OP_READ_RESP_MIDDLE;
        struct pkt p = {.opcode = opcode,
                        .psn = first + k,
                        .dest_qpn = qp_number(qp[i]),
                        .aeth = {.syndrome = ACKED},
                        .payload = data + 256 * k,
                        .payload_len = k + 1 == n ? len - 256 * k : 256};
        fix_rx(&fix, &p);
    }
    turn();
}
static inline void answer(int i, uint32_t of_psn, uint8_t syndrome)
{
    struct pkt p = {.opcode = OP_ACK, .psn = of_psn, .dest_qpn = qp_number(qp[i]), .aeth = {.syndrome = syndrome}};
    fix_rx(&fix, &p);
    turn();
}

static inline struct event next_event(void)
{
    struct event ev = {.type = 0};
    return engine_pop_event(fix.e, &ev) ? ev : (struct event){.type = 0};
}

#endif
