// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/objects/ah.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/verbs/base/gid.h"
#include "src/verbs/device/gid_table.h"
#include "src/verbs/shim/datagram_rsockets.h"

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

/* Explains on stderr, if the user asked for it, why there is no address handle for attr. */
static void explain(const struct ibv_ah_attr *attr, const uint8_t *sgid, const char *why)
{
    const char *verbose = getenv(PM_ENV_VERBOSE);
    char from[INET6_ADDRSTRLEN] = "none", to[INET6_ADDRSTRLEN];
    if (!verbose || !*verbose)
        return;
    if (sgid)
        inet_ntop(AF_INET6, sgid, from, sizeof(from));
    inet_ntop(AF_INET6, attr->grh.dgid.raw, to, sizeof(to));
    fprintf(stderr, "pumice: no address handle from GID index %u (%s) of port %u to GID %s: %s\n", attr->grh.sgid_index,
            from, attr->port_num, to, why);
}

/* Can a packet with source GID sgid go to dgid? Returns NULL, or the reason why not. */
static const char *unreachable(const uint8_t sgid[16], const uint8_t dgid[16])
{
    static const uint8_t unset[16];
    if (!memcmp(dgid, unset, sizeof(unset)))
        return "the destination GID is zero";
    if (vb_gid_is_group(dgid))
        return NULL; /* if the families differ, the daemon takes a source GID of the right family */
    if (vb_gid_is_v4(sgid) != vb_gid_is_v4(dgid))
        return vb_gid_is_v4(sgid) ? "an IPv4 address can't send to an IPv6 address"
                                  : "an IPv6 address can't send to an IPv4 address";
    return NULL;
}

/* Each datagram rsocket has an address handle of its own port, by LID alone. If the user allows them, the LID 0, which
 * every RoCE port has, leads to the first GID of the port. Fills in *full. */
static bool complete_own(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah_attr *full)
{
    struct pm_query_gid_rep gid;
    if (attr->is_global || attr->dlid != 0 || !vb_datagram_rsockets())
        return false;
    *full = *attr;
    memset(&full->grh, 0, sizeof(full->grh));
    if (vb_query_gid_entry(vb_ctx(pd->context), attr->port_num, 0, &gid) != 0)
        return false;
    memcpy(full->grh.dgid.raw, gid.gid, sizeof(full->grh.dgid.raw));
    full->is_global = 1;
    return true;
}

VB_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct pm_query_gid_rep gid;
    struct ibv_ah_attr full;
    struct pm_av av;
    const char *why = NULL;
    if (complete_own(pd, attr, &full))
        attr = &full;
    int rc = vb_ah_to_av(attr, &av);
    if (rc) {
        explain(attr, NULL,
                attr->is_global
                    ? "the device has port 1 only"
                    : "RoCE addresses need a GRH (is_global = 1); datagram rsockets need " PM_ENV_DATAGRAM_RSOCKETS
                      "=1");
        return vb_null(rc);
    }
    rc = vb_query_gid_entry(vb_ctx(pd->context), attr->port_num, attr->grh.sgid_index, &gid);
    if (rc == -ENOENT || rc == -EINVAL)
        why = "the GID table has no such entry";
    else if (rc == 0)
        why = unreachable(gid.gid, av.dgid);
    if (why)
        explain(attr, rc ? NULL : gid.gid, why);
    if (rc || why)
        return vb_null(why ? -EINVAL : rc);
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
    free(vb_ah(ah));
    return 0;
}

/* For provider libraries that build Ethernet headers themselves. Pumice lets the kernel resolve addresses. */
VB_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                          uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    (void)context, (void)attr, (void)eth_mac, (void)vid;
    return -vb_err(-EOPNOTSUPP);
}
