// SPDX-License-Identifier: BSD-2-Clause
/* Address handles for replies. The library makes them from the 40 bytes in front of a received datagram. They hold the
 * IPv6 header of the packet, or the IPv4 header in bytes 20 to 39 (RoCEv2 annex A17.4.5). */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

#include "src/verbs/base/api.h"
#include "src/verbs/base/gid.h"
#include "src/verbs/device/gid_table.h"

/* The fields of the received IP header that a reply needs. */
struct seen {
    union ibv_gid src, dst; /* as GIDs */
    uint32_t flow_label;
    uint8_t traffic_class;
    uint8_t hop_limit;
    bool multicast; /* dst is a group */
};

static void map_v4(uint32_t addr, union ibv_gid *gid)
{
    memset(gid->raw, 0, 10);
    memset(gid->raw + 10, 0xff, 2);
    memcpy(gid->raw + 12, &addr, 4);
}

/* Is there an IPv4 header? The bytes in front of it are undefined and may look like an IPv6 header. So the checksum of
 * the IPv4 header decides: the ones' complement sum of all its 16-bit words is all ones. */
static bool is_ipv4(const struct iphdr *ip)
{
    uint16_t words[sizeof(*ip) / 2];
    uint32_t sum = 0;
    memcpy(words, ip, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        sum += words[i];
    sum = (sum & 0xffff) + (sum >> 16);
    return ip->version == 4 && ip->ihl == 5 && sum + (sum >> 16) == 0xffff;
}

/* Reads the IP header in front of the datagram. Returns false if there is none. */
static bool parse(const struct ibv_grh *grh, struct seen *s)
{
    struct iphdr v4;
    struct ip6_hdr v6;
    memset(s, 0, sizeof(*s));
    memcpy(&v4, (const uint8_t *)grh + sizeof(*grh) - sizeof(v4), sizeof(v4));
    memcpy(&v6, grh, sizeof(v6));
    if (is_ipv4(&v4)) {
        map_v4(v4.saddr, &s->src);
        map_v4(v4.daddr, &s->dst);
        s->traffic_class = v4.tos;
        s->hop_limit = v4.ttl;
        s->multicast = IN_MULTICAST(ntohl(v4.daddr));
        return true;
    }
    uint32_t flow = ntohl(v6.ip6_flow);
    if (flow >> 28 != 6)
        return false;
    memcpy(s->src.raw, &v6.ip6_src, 16);
    memcpy(s->dst.raw, &v6.ip6_dst, 16);
    s->flow_label = flow & 0xfffff;
    s->traffic_class = (uint8_t)(flow >> 20);
    s->hop_limit = v6.ip6_hops;
    s->multicast = IN6_IS_ADDR_MULTICAST(&v6.ip6_dst);
    return true;
}

static bool same_family(const union ibv_gid *a, const union ibv_gid *b)
{
    return vb_gid_is_v4(a->raw) == vb_gid_is_v4(b->raw);
}

/* Finds the own GID to which the packet was sent; for a group, the first own GID of its family. Returns the index, or
 * -1 if there is none. */
static int own_index(struct vb_context *c, uint8_t port, const struct seen *s)
{
    struct pm_query_gid_rep rep;
    for (uint32_t i = 0;; i++) {
        int rc = vb_query_gid_entry(c, port, i, &rep);
        if (rc == -ENOENT)
            continue;
        if (rc)
            return -1;
        if (rep.type != IBV_GID_TYPE_ROCE_V2)
            continue; /* the same address has an entry of RoCE v2, which the datagram is of */
        union ibv_gid gid;
        memcpy(gid.raw, rep.gid, sizeof(gid.raw));
        if (s->multicast ? same_family(&gid, &s->dst) : !memcmp(gid.raw, s->dst.raw, sizeof(gid.raw)))
            return (int)i;
    }
}

VB_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                                  struct ibv_ah_attr *attr)
{
    struct seen s;
    memset(attr, 0, sizeof(*attr));
    if (port != 1 || !(wc->wc_flags & IBV_WC_GRH) || !parse(grh, &s))
        return vb_err(-EINVAL), -1;
    int index = own_index(vb_ctx(context), port, &s);
    if (index < 0)
        return vb_err(-ENODATA), -1;
    attr->dlid = wc->slid;
    attr->sl = 0; /* wc->sl tells which headers the datagram had, see vb_wc_sl */
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port;
    attr->is_global = 1;
    attr->grh.dgid = s.src;
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.flow_label = s.flow_label;
    attr->grh.traffic_class = s.traffic_class;
    attr->grh.hop_limit = s.hop_limit;
    return 0;
}

VB_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;
    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}
