// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/control/queue_rule.h"

#include <errno.h>
#include <stdbool.h>

#include "src/verbs/base/verbs_v45.h"

/* --- mlx5 -------------------------------------------------------------------------------------- */

/* Bytes of the segments of an mlx5 send request, as providers/mlx5/wqe.h of rdma-core defines them. */
enum {
    CTRL = 16,
    REMOTE_ADDRESS = 16,
    ATOMIC = 16,
    UMR_CTRL = 48,
    MKEY_CONTEXT = 64,
    UMR_DATA = 64,
    DATAGRAM = 48,
    XRC = 16,
    DATA = 16, /* one SGE */
    INLINE_HEAD = 4,

    BLOCK = 64, /* a request takes whole blocks */
    REQUEST_MAX = 1024,
    RECV_REQUEST_MAX = 512,
    BLOCKS_MAX = 32768, /* of a send queue */
};

#define KEY_OPS (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)
#define ATOMIC_OPS (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define RDMA_OPS (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ)

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint64_t round_up(uint64_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t pow2_at_least(uint64_t n)
{
    uint64_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

/* Bytes of a send request before its data: as much as the largest of the requests that the QP may send. */
static uint32_t mlx5_overhead(const struct vb_queue_ask *ask)
{
    const uint64_t ops = ask->send_ops ? ask->send_ops : ask->type == IBV_QPT_UD ? 0 : KEY_OPS;
    uint32_t size = CTRL;
    if (ops & RDMA_OPS)
        size = larger(size, CTRL + REMOTE_ADDRESS);
    if (ops & ATOMIC_OPS)
        size = larger(size, CTRL + REMOTE_ADDRESS + ATOMIC);
    if (ops & KEY_OPS)
        size = larger(size, CTRL + UMR_CTRL + MKEY_CONTEXT + UMR_DATA);
    if (ask->type == IBV_QPT_UD)
        size += DATAGRAM;
    if (ask->type == IBV_QPT_XRC_SEND)
        size += XRC;
    return size;
}

static int mlx5_send_queue(struct vb_queue_ask *ask)
{
    struct ibv_qp_cap *cap = &ask->cap;
    const uint32_t overhead = mlx5_overhead(ask);
    const uint64_t sges = overhead + (uint64_t)cap->max_send_sge * DATA;
    const uint64_t with_inline =
        cap->max_inline_data ? overhead + round_up((uint64_t)INLINE_HEAD + cap->max_inline_data, DATA) : 0;
    const uint64_t size = sges > with_inline ? sges : with_inline;
    if (size > REQUEST_MAX)
        return -EINVAL;
    if (cap->max_send_wr == 0)
        return 0;
    const uint64_t request = round_up(size, BLOCK);
    if (pow2_at_least(cap->max_send_wr * request) / BLOCK > BLOCKS_MAX)
        return -EINVAL;
    cap->max_inline_data = (uint32_t)request - overhead - INLINE_HEAD;
    return 0;
}

static int mlx5(struct vb_queue_ask *ask)
{
    if ((uint64_t)ask->cap.max_recv_sge * DATA > RECV_REQUEST_MAX)
        return -EINVAL;
    return mlx5_send_queue(ask);
}

/* --- irdma ------------------------------------------------------------------------------------- */

enum { QUANTA_MAX = 32768, SEND_QUANTA_RESERVED = 258, RECV_QUANTA_RESERVED = 1 };

/* How many blocks of 32 bytes (quanta) a request takes: the binary logarithm. Generation 2 of the adapters. */
static unsigned irdma_shift(uint32_t sges, uint32_t inline_data)
{
    if (sges <= 1 && inline_data <= 8)
        return 0;
    if (sges < 4 && inline_data <= 39)
        return 1;
    return sges < 8 && inline_data <= 101 ? 2 : 3;
}

static bool irdma_fits(uint32_t requests, unsigned shift, uint32_t reserved)
{
    return pow2_at_least(((uint64_t)requests << shift) + reserved) <= QUANTA_MAX;
}

/* A send request also has room for immediate data, as if for one SGE more. */
static int irdma(const struct vb_queue_ask *ask)
{
    const struct ibv_qp_cap *cap = &ask->cap;
    const unsigned send = irdma_shift(cap->max_send_sge + 1, cap->max_inline_data);
    const unsigned recv = irdma_shift(cap->max_recv_sge, 0);
    return irdma_fits(cap->max_send_wr, send, SEND_QUANTA_RESERVED) &&
                   irdma_fits(cap->max_recv_wr, recv, RECV_QUANTA_RESERVED)
               ? 0
               : -EINVAL;
}

/* --- the others -------------------------------------------------------------------------------- */

/* SGEs and inline data share the same room of a request. */
static void rxe(struct vb_queue_ask *ask)
{
    ask->cap.max_inline_data =
        larger(ask->cap.max_inline_data, ask->cap.max_send_sge * (uint32_t)sizeof(struct ibv_sge));
}

int vb_queue_rule(enum pm_queue_rule rule, struct vb_queue_ask *ask)
{
    switch (rule) {
    case PM_QUEUE_MLX5:
        return mlx5(ask);
    case PM_QUEUE_IRDMA:
        return irdma(ask);
    case PM_QUEUE_RXE:
        rxe(ask);
        return 0;
    case PM_QUEUE_AS_ASKED:
    case PM_QUEUE_OWN:
        break;
    }
    return 0;
}
