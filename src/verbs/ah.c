// SPDX-License-Identifier: BSD-2-Clause
/* Address handles. They are made here: only the source GID is checked against the daemon's table. */
#include "ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

int vb_ah_to_av(const struct ibv_ah_attr *attr, struct pm_av *av)
{
    if (!attr->is_global || attr->port_num != 1)
        return -EINVAL;
    memcpy(av->dgid, attr->grh.dgid.raw, sizeof(av->dgid));
    av->flow_label = attr->grh.flow_label;
    av->sgid_index = attr->grh.sgid_index;
    av->hop_limit = attr->grh.hop_limit;
    av->traffic_class = attr->grh.traffic_class;
    av->sl = attr->sl;
    return 0;
}

void vb_ah_from_av(const struct pm_av *av, uint8_t port, struct ibv_ah_attr *attr)
{
    static const uint8_t unset[16];
    memset(attr, 0, sizeof(*attr));
    memcpy(attr->grh.dgid.raw, av->dgid, sizeof(av->dgid));
    attr->grh.flow_label = av->flow_label;
    attr->grh.sgid_index = av->sgid_index;
    attr->grh.hop_limit = av->hop_limit;
    attr->grh.traffic_class = av->traffic_class;
    attr->sl = av->sl;
    attr->is_global = memcmp(av->dgid, unset, sizeof(unset)) != 0;
    attr->port_num = port;
}

VB_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct pm_query_gid_rep gid;
    struct pm_av av;
    int rc = vb_ah_to_av(attr, &av);
    if (rc == 0)
        rc = vb_query_gid_entry(vb_ctx(pd->context), attr->port_num, attr->grh.sgid_index, &gid);
    if (rc)
        return vb_null(rc == -ENOENT ? -EINVAL : rc);
    struct vb_ah *ah = calloc(1, sizeof(*ah));
    if (!ah)
        return NULL;
    ah->ah.context = pd->context;
    ah->ah.pd = pd;
    ah->av = av;
    return &ah->ah;
}

VB_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(VB_OF(struct vb_ah, ah, ah));
    return 0;
}

/* Completions carry a GRH only on UD QPs, which this library can't make. */
VB_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                                  struct ibv_ah_attr *attr)
{
    (void)context, (void)port, (void)wc, (void)grh, (void)attr;
    return vb_err(-EOPNOTSUPP);
}

VB_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    (void)pd, (void)wc, (void)grh, (void)port;
    return vb_null(-EOPNOTSUPP);
}

VB_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return vb_err(-EOPNOTSUPP);
}

VB_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return vb_err(-EOPNOTSUPP);
}

/* For providers that build Ethernet headers themselves; Pumice's addresses are resolved by the kernel. */
VB_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                          uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    (void)context, (void)attr, (void)eth_mac, (void)vid;
    return -vb_err(-EOPNOTSUPP);
}
