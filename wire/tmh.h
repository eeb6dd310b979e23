// SPDX-License-Identifier: BSD-2-Clause
/* Decodes and encodes the two headers of tag matching. The payload of a SEND begins with the tag matching header (TMH).
 * In a rendezvous request, the rendezvous header (RVH) follows. The layouts are those of rdma-core's
 * infiniband/tm_types.h. */
#ifndef PUMICE_WIRE_TMH_H
#define PUMICE_WIRE_TMH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TMH_LEN 16
#define RVH_LEN 16

/* Operations of a TMH; the values are those of enum ibv_tmh_op. */
enum tmh_op {
    TMH_NO_TAG = 0,
    TMH_RNDV = 1,
    TMH_FIN = 2,
    TMH_EAGER = 3,
};

struct tmh {
    uint8_t opcode; /* enum tmh_op, but not checked: the peer may send any value */
    uint8_t reserved[3]; /* not checked, but copied, because programs may keep private bytes here */
    uint32_t app_ctx; /* opaque word of the sender, host byte order */
    uint64_t tag; /* host byte order */
};

struct rvh {
    uint64_t va; /* address of the sender's data; the receiver reads them by RDMA READ */
    uint32_t rkey;
    uint32_t len; /* bytes */
};

/* Decode a header from p[0 ... len). If len is less than TMH_LEN or RVH_LEN, they return false and leave *out
 * unchanged. Otherwise decoding always succeeds. */
bool tmh_decode(const uint8_t *p, size_t len, struct tmh *out);
bool rvh_decode(const uint8_t *p, size_t len, struct rvh *out);

/* Encode a header: write TMH_LEN or RVH_LEN bytes to dst, and return that number. */
size_t tmh_encode(const struct tmh *t, uint8_t *dst);
size_t rvh_encode(const struct rvh *r, uint8_t *dst);

#endif
