// SPDX-License-Identifier: BSD-2-Clause
/* Address handles. The library makes them itself; it only asks the daemon for the source GID. It explains a refusal on
 * stderr if PM_ENV_VERBOSE is set. ah_wc.c makes address handles for replies, from a received datagram. */
#ifndef PUMICE_SRC_VERBS_OBJECTS_AH_H
#define PUMICE_SRC_VERBS_OBJECTS_AH_H

#include <infiniband/verbs.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"

struct vb_ah {
    struct ibv_ah ah;
    struct pm_av av; /* the address vector that goes into the request of a datagram */
};

static inline struct vb_ah *vb_ah(struct ibv_ah *a)
{
    return VB_OF(struct vb_ah, ah, a);
}

/* Converts an address vector of the verbs API to that of the daemon. 0, or -EINVAL: it has no GRH (RoCE has no LIDs),
 * or its port is not port 1. */
int vb_ah_to_av(const struct ibv_ah_attr *attr, struct pm_av *av);
/* Converts it back. An address vector that was never set has no GRH. */
void vb_ah_from_av(const struct pm_av *av, uint8_t port, struct ibv_ah_attr *attr);

#endif
