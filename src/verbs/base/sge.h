// SPDX-License-Identifier: BSD-2-Clause
/* Scatter/gather elements. The verbs API and the rings (pumice/abi.h) have the same layout for them, so lists
 * of them are copied as they are. */
#ifndef PUMICE_SRC_VERBS_BASE_SGE_H
#define PUMICE_SRC_VERBS_BASE_SGE_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <string.h>

#include "pumice/abi_rings.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct pm_sge) &&
                   offsetof(struct ibv_sge, length) == offsetof(struct pm_sge, length) &&
                   offsetof(struct ibv_sge, lkey) == offsetof(struct pm_sge, lkey),
               "SGEs are copied as they are");

/* Distributes len bytes of data over num SGEs. The daemon has checked that the bytes fit, and that the client may write
 * there. */
static inline void vb_scatter(const struct pm_sge *sge, uint32_t num, const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < num && len; i++) {
        uint32_t part = sge[i].length < len ? sge[i].length : len;
        memcpy((void *)(uintptr_t)sge[i].addr, data, part);
        data += part;
        len -= part;
    }
}

#endif
