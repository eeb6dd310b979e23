// SPDX-License-Identifier: BSD-2-Clause
/* How the daemon converts the fields of a request in a ring, operation by operation. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/session/wqe_ring.h"

static _Alignas(64) uint8_t slots[4 * 256];
static _Atomic uint32_t tail;
static struct ring ring;
static struct {
    struct send_wr wr;
    struct sge sge[ENGINE_MAX_SGE];
    uint8_t data[ENGINE_MAX_INLINE];
} out;
static struct send_slot slot = {&out.wr, out.sge, out.data, ENGINE_MAX_SGE, ENGINE_MAX_INLINE};

/* A request in which every field is different. */
static struct pm_send_wqe *start(uint8_t opcode, bool has_av)
{
    struct pm_send_wqe *w = (struct pm_send_wqe *)(slots + 256);

    memset(slots, 0xee, sizeof(slots));
    memset(&out, 0x55, sizeof(out));
    atomic_store(&tail, 6);
    ring = (struct ring){.base = slots,
                         .tail = &tail,
                         .slots = 4,
                         .stride = 256,
                         .head = 5,
                         .max_sge = 2,
                         .max_inline = 64,
                         .has_av = has_av};
    *w = (struct pm_send_wqe){.wr_id = 0x0102030405060708,
                              .remote_addr = 0x1112131415161718,
                              .compare_add = 0x2122232425262728,
                              .swap = 0x3132333435363738,
                              .rkey = 0x41424344,
                              .imm = 0x51525354,
                              .remote_qpn = 0xff616263,
                              .remote_qkey = 0x71727374,
                              .mr_key = 0x81828384,
                              .srqn = 0xff919293,
                              .opcode = opcode};
    return w;
}

Test(daemon_ring, common_fields)
{
    struct pm_send_wqe *w = start(WR_RDMA_WRITE_WITH_IMM, false);
    const struct pm_sge sge[2] = {{1, 2, 3}, {4, 5, 6}};

    w->num_sge = 2;
    w->flags = PM_SEND_FENCE | PM_SEND_SOLICITED;
    memcpy(w + 1, sge, sizeof(sge));
    cr_assert_eq(ring_waiting(&ring), 1);
    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert(out.wr.wr_id == w->wr_id && out.wr.slot == 5 && out.wr.opcode == WR_RDMA_WRITE_WITH_IMM);
    cr_assert(out.wr.flags == (SEND_FENCE | SEND_SOLICITED) && out.wr.num_sge == 2 && out.wr.inline_len == 0);
    cr_assert(out.wr.remote_addr == w->remote_addr && out.wr.rkey == w->rkey && out.wr.srqn == 0x919293);
    cr_assert_arr_eq(out.wr.imm, &w->imm, 4);
    cr_assert_arr_eq((uint8_t *)out.sge, (const uint8_t *)sge, sizeof(sge));
}

Test(daemon_ring, atomics_and_atomic_write)
{
    struct pm_send_wqe *w = start(WR_ATOMIC_CMP_AND_SWP, false);

    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert(out.wr.compare_add == w->compare_add && out.wr.swap == w->swap);
    w = start(WR_ATOMIC_WRITE, false);
    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert_eq(out.wr.compare_add, w->compare_add);
}

Test(daemon_ring, invalidation)
{
    const uint8_t ops[] = {WR_SEND_WITH_INV, WR_LOCAL_INV};

    for (unsigned i = 0; i < sizeof(ops); i++) {
        start(ops[i], false);
        cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
        cr_assert_eq(out.wr.inv_rkey, 0x51525354);
    }
}

Test(daemon_ring, bind)
{
    struct pm_send_wqe *w = start(WR_BIND_MW, false);

    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert(out.wr.bind.mw_key == w->rkey && out.wr.bind.new_key == w->imm && out.wr.bind.mr_key == w->mr_key);
    cr_assert(out.wr.bind.access == 0xff919293 && out.wr.bind.addr == w->remote_addr);
    cr_assert_eq(out.wr.bind.length, w->compare_add);
}

Test(daemon_ring, flush)
{
    struct pm_send_wqe *w = start(WR_FLUSH, false);

    w->compare_add = 4096;
    w->swap = FLUSH_PERSISTENT | FLUSH_REGION << 8;
    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert(out.wr.flush.length == 4096 && out.wr.flush.placement == FLUSH_PERSISTENT &&
              out.wr.flush.selectivity == FLUSH_REGION);
    w->compare_add = 0x100000001;
    w->swap = FLUSH_GLOBAL | 0x10000;
    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert_eq(out.wr.flush.length, UINT32_MAX, "not cut off");
    cr_assert_eq(out.wr.flush.selectivity, UINT8_MAX, "not cut off");
}

Test(daemon_ring, address_vector)
{
    struct pm_send_wqe *w = start(WR_SEND, true);
    struct pm_av av = {
        .dgid = {1, 2, 3}, .flow_label = 0xabcde, .sgid_index = 2, .hop_limit = 3, .traffic_class = 4, .sl = 5};
    const struct pm_sge sge = {7, 8, 9};

    memcpy(w + 1, &av, sizeof(av));
    memcpy((uint8_t *)(w + 1) + sizeof(av), &sge, sizeof(sge));
    w->num_sge = 1;
    cr_assert_eq(ring_read_send(&ring, &slot), RING_OK);
    cr_assert_arr_eq(out.wr.ud.av.dgid, av.dgid, 16);
    cr_assert(out.wr.ud.av.flow_label == 0xabcde && out.wr.ud.av.sgid_index == 2 && out.wr.ud.av.hop_limit == 3 &&
              out.wr.ud.av.traffic_class == 4 && out.wr.ud.av.sl == 5);
    cr_assert(out.wr.ud.qpn == 0x616263 && out.wr.ud.qkey == 0x71727374);
    cr_assert(out.sge[0].addr == 7 && out.sge[0].length == 8 && out.sge[0].lkey == 9);
    cr_assert_eq(ring_send_stride(2, 64, true), 64 + 128);
    cr_assert_eq(ring_send_stride(2, 64, false), 64 + 64);
}

Test(daemon_ring, receive_requests_go_by_index_or_cookie)
{
    struct pm_recv_wqe *r = (struct pm_recv_wqe *)(slots + 256);
    struct ring_recv in;

    start(WR_SEND, false);
    *r = (struct pm_recv_wqe){.wr_id = 77, .num_sge = 1, .wqe_index = 99};
    cr_assert_eq(ring_read_recv(&ring, &in), RING_OK);
    cr_assert_eq(in.wr.slot, 5);
    ring.has_wqe_index = true;
    cr_assert_eq(ring_read_recv(&ring, &in), RING_OK);
    cr_assert_eq(in.wr.slot, 99);
    cr_assert_eq(ring_posted_us(&ring), 99);
    r->num_sge = 3;
    cr_assert_eq(ring_read_recv(&ring, &in), RING_BAD_SGE);
}
