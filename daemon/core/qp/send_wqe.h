// SPDX-License-Identifier: BSD-2-Clause
/* An entry of a send queue: a work request of the QP's user, or one of the tag-matching offload, and its place in the
 * PSNs. */
#ifndef PUMICE_CORE_QP_SEND_WQE_H
#define PUMICE_CORE_QP_SEND_WQE_H

#include "daemon/core/base/psn.h"
#include "daemon/core/base/types.h"

struct tm_entry;

enum offload_request { /* requests of the tag-matching offload */
                       OFFLOAD_NONE = 0, /* the request is the user's */
                       OFFLOAD_READ, /* fetches the data of a rendezvous */
                       OFFLOAD_FIN, /* tells the sender that they are there */
};
struct send_wqe {
    struct send_wr wr;
    uint32_t length; /* bytes of the message */
    uint32_t first_psn; /* set when the request gets its place in the PSNs, as npkts and chunk */
    uint32_t npkts; /* number of its PSNs. A local operation takes none */
    uint32_t chunk; /* READ: number of PSNs that each of its request packets asks for */
    uint32_t pd; /* of its SGEs' keys */
    struct tm_entry *entry; /* OFFLOAD_READ: the entry whose data it fetches */
    uint8_t offload; /* enum offload_request */
    uint8_t local_error; /* enum wc_status that it will complete with once all requests before it are done; 0: none */
    uint8_t local_cause; /* … and the completion's vendor_err */
    union {
        struct sge sge[1]; /* [wr.num_sge] */
        uint8_t data[1]; /* [wr.inline_len] bytes */
    } u;
};

static inline bool wqe_is_read(const struct send_wqe *w)
{
    return w->wr.opcode == WR_RDMA_READ;
}
static inline bool wqe_is_atomic(const struct send_wqe *w)
{
    return w->wr.opcode == WR_ATOMIC_CMP_AND_SWP || w->wr.opcode == WR_ATOMIC_FETCH_AND_ADD;
}
/* The request is done only when its own response has come. Until then it takes one of max_rd_atomic credits. */
static inline bool wqe_is_answered(const struct send_wqe *w)
{
    return wqe_is_read(w) || wqe_is_atomic(w) || w->wr.opcode == WR_ATOMIC_WRITE || w->wr.opcode == WR_FLUSH;
}
/* The request is carried out on this side. No packet is sent for it. */
static inline bool wqe_is_local(const struct send_wqe *w)
{
    return w->wr.opcode == WR_BIND_MW || w->wr.opcode == WR_LOCAL_INV;
}
/* Its packets carry payload. */
static inline bool wqe_has_payload(const struct send_wqe *w)
{
    return !wqe_is_answered(w) || w->wr.opcode == WR_ATOMIC_WRITE;
}
/* Index of the packet of the request that psn is. psn is not before its first packet. (psn_diff will not do: 2^31 bytes
 * take 2^23 packets of 256 bytes.) */
static inline uint32_t wqe_offset(const struct send_wqe *w, uint32_t psn)
{
    return (psn - w->first_psn) & PSN_MASK;
}
/* The PSN after its last packet. */
static inline uint32_t wqe_end_psn(const struct send_wqe *w)
{
    return psn_add(w->first_psn, w->npkts);
}

#endif
