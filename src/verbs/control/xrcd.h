// SPDX-License-Identifier: BSD-2-Clause
/* Opening and closing XRC domains. The daemon identifies a domain by the inode of a file. The request carries a
 * descriptor of the file. */
#ifndef PUMICE_SRC_VERBS_CONTROL_XRCD_H
#define PUMICE_SRC_VERBS_CONTROL_XRCD_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "src/verbs/base/api.h"

struct vb_xrcd {
    struct ibv_xrcd xrcd;
    uint32_t handle;
};

static inline struct vb_xrcd *vb_xrcd(struct ibv_xrcd *x)
{
    return VB_OF(struct vb_xrcd, xrcd, x);
}

/* The functions that a context points to: NULL with errno, or an errno value. */
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);

#endif
