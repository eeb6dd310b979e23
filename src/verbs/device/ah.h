// SPDX-License-Identifier: BSD-2-Clause
/* Address vectors between the verbs API and the contract with the daemon. */
#ifndef VERBS_AH_H
#define VERBS_AH_H

#include "src/verbs/base/objects.h"

/* 0, or -EINVAL: without GRH (RoCE has no LIDs) or not of port 1. */
int vb_ah_to_av(const struct ibv_ah_attr *attr, struct pm_av *av);
void vb_ah_from_av(const struct pm_av *av, uint8_t port, struct ibv_ah_attr *attr);

#endif
