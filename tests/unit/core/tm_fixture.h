// SPDX-License-Identifier: BSD-2-Clause
/* A matching list, and short functions to use it. */
#ifndef PUMICE_TESTS_UNIT_CORE_TM_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_TM_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "daemon/core/tm/tag_list.h"

#define EXACT UINT64_MAX
#define TRACE_SLOTS 4096u

static inline struct tag_list *tm_make(uint32_t max_num_tags, enum tm_profile_id profile)
{
    struct tm_params p = {
        .max_num_tags = max_num_tags, .max_ops = TM_MAX_OPS, .trace_slots = TRACE_SLOTS, .profile = (uint8_t)profile};
    size_t size = (tm_size(&p) + 63) / 64 * 64;
    void *mem = size ? aligned_alloc(64, size) : NULL;
    if (!mem)
        return NULL;
    memset(mem, 0, size);
    return tm_init(mem, &p);
}

/* The handle of the nth use of a slot. */
static inline uint32_t handle_of(uint32_t slot, uint32_t generation)
{
    return generation << TM_SLOT_BITS | slot;
}

/* Adds a buffer of 1 MiB, so that no message is too long. */
static inline struct tm_op_result do_add(struct tag_list *tm, uint32_t handle, uint64_t tag, uint64_t mask, int cnt)
{
    struct sge sge = {.addr = 0x1000, .length = 1 << 20, .lkey = 1};
    struct tm_op op = {.opcode = TM_ADD,
                       .flags = (uint8_t)(TM_OP_SIGNALED | (cnt >= 0 ? TM_OP_SYNC : 0)),
                       .unexpected_cnt = (uint32_t)cnt,
                       .handle = handle,
                       .tag = tag,
                       .mask = mask,
                       .recv_wr_id = handle,
                       .num_sge = 1,
                       .sge = &sge};
    struct tm_op_result r;
    tm_op(tm, &op, &r, 0);
    return r;
}

static inline struct tm_op_result do_del(struct tag_list *tm, uint32_t handle, int cnt)
{
    struct tm_op op = {.opcode = TM_DEL,
                       .flags = (uint8_t)(TM_OP_SIGNALED | (cnt >= 0 ? TM_OP_SYNC : 0)),
                       .unexpected_cnt = (uint32_t)cnt,
                       .handle = handle};
    struct tm_op_result r;
    tm_op(tm, &op, &r, 0);
    return r;
}

static inline struct tm_op_result do_sync(struct tag_list *tm, uint32_t cnt)
{
    struct tm_op op = {.opcode = TM_SYNC, .flags = TM_OP_SIGNALED, .unexpected_cnt = cnt};
    struct tm_op_result r;
    tm_op(tm, &op, &r, 0);
    return r;
}

/* The first packet of a message. It is the whole message unless msg.len is larger than its bytes. */
struct packet {
    uint8_t bytes[512];
    struct tm_msg msg;
};
static inline const struct tm_msg *make_msg(struct packet *p, uint8_t opcode, uint64_t tag, uint32_t len)
{
    memset(p, 0, sizeof(*p));
    struct tmh tmh = {.opcode = opcode, .app_ctx = 0xabcd0123, .tag = tag, .reserved = {1, 2, 3}};
    tmh_encode(&tmh, p->bytes);
    p->msg = (struct tm_msg){.data = p->bytes, .len = len, .whole = true, .can_read = true, .qpn = 17};
    return &p->msg;
}
static inline const struct tm_msg *make_rndv(struct packet *p, uint64_t tag, uint32_t data_len)
{
    make_msg(p, TMH_RNDV, tag, TMH_LEN + RVH_LEN);
    struct rvh rvh = {.va = 0x123456789abcdef0, .rkey = 0xfeedbeef, .len = data_len};
    rvh_encode(&rvh, p->bytes + TMH_LEN);
    return &p->msg;
}

/* Decides on an eager message of one packet and commits. Returns the entry that it matched; NULL: unexpected. */
static inline const struct tm_entry *begin_eager(struct tag_list *tm, uint64_t tag, struct tm_rx *rx)
{
    struct packet p;
    struct tm_decision d;
    tm_decide(tm, make_msg(&p, TMH_EAGER, tag, TMH_LEN), &d);
    tm_commit(tm, &d, rx, 0);
    return d.entry;
}
/* As begin_eager, but also delivers the message at once. Returns the handle that it matched; TM_NO_HANDLE:
 * unexpected. */
static inline uint32_t send_eager(struct tag_list *tm, uint64_t tag)
{
    struct tm_rx rx;
    const struct tm_entry *e = begin_eager(tm, tag, &rx);
    uint32_t handle = e ? e->handle : TM_NO_HANDLE;
    tm_done(tm, &rx, 0);
    return handle;
}

static inline struct tm_info info_of(const struct tag_list *tm)
{
    struct tm_info info;
    tm_info(tm, &info);
    return info;
}
static inline struct tm_event last_event(const struct tag_list *tm)
{
    struct tm_event ev = {0};
    if (tm_trace_end(tm))
        tm_trace_get(tm, tm_trace_end(tm) - 1, &ev);
    return ev;
}

#endif
