// SPDX-License-Identifier: BSD-2-Clause
/* The opcodes of send requests: which QPs may send them, which fields of the request count, and how they complete. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_WR_OPCODE_H
#define PUMICE_SRC_VERBS_DATAPATH_WR_OPCODE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which fields of a send request count. */
enum vb_wr_kind {
    VB_WR_KIND_NONE, /* no such request */
    VB_WR_KIND_SEND,
    VB_WR_KIND_RDMA,
    VB_WR_KIND_ATOMIC,
    VB_WR_KIND_ATOMIC_WRITE,
    VB_WR_KIND_FLUSH,
    VB_WR_KIND_INV,
    VB_WR_KIND_BIND
};
struct vb_wr_opcode {
    uint8_t kind; /* enum vb_wr_kind */
    uint8_t types; /* VB_TYPE_* of objects/qp.h: the QPs that may send it; 0: none */
    bool can_inline; /* the request carries data to the peer */
    bool imm; /* it has immediate data, or a key to invalidate */
    uint8_t wc; /* enum ibv_wc_opcode of its completion */
};

/* The properties of an opcode (enum ibv_wr_opcode). An unknown opcode has kind VB_WR_KIND_NONE. */
const struct vb_wr_opcode *vb_wr_opcode(unsigned opcode);

/* The bit of a QP type, VB_TYPE_*, on a device that does not have `absent` (enum pm_absent). 0: such a QP sends
 * nothing. */
uint8_t vb_type_bit(enum ibv_qp_type type, uint32_t absent);

/* The completion opcode (enum ibv_wc_opcode) of a send request's opcode. */
uint8_t vb_wc_opcode(uint8_t wr_opcode);

#define VB_MAX_MSG ((uint64_t)1 << 31) /* bytes; max_msg_sz of the device */
/* May a request of this opcode have this SGE list? It may not be longer than a message, and an atomic needs eight bytes
 * at least. */
bool vb_length_ok(uint8_t wr_opcode, const struct ibv_sge *sge, size_t num);

#endif
