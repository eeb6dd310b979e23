// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/cm_resolve.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/cm/host/route.h"
#include "daemon/cm/host/ucma_sockaddr.h"
#include "wire/gid.h"

#define LOOPBACK_IFINDEX 1u /* in each network namespace */

/* Has this machine the address? The kernel tells by a bind. */
static bool is_of_machine(const struct cm_addr *addr, uint32_t scope)
{
    struct cm_addr any_port = *addr;
    union addr a;

    any_port.port = 0;
    cm_addr_to_net(&any_port, scope, &a);
    int fd = socket(a.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && bind(fd, &a.sa, addr_len(&a)) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

int cm_resolve_local(const struct cm_devices *d, const struct cm_addr *addr, uint32_t scope, struct cm_route *route)
{
    if (cm_devices_find(d, addr->gid, scope, route))
        return 0;
    return is_of_machine(addr, scope) ? -ENODEV : -EADDRNOTAVAIL;
}

/* A link-local destination is best reached from a link-local address. A group is reached from any address. */
static bool use(const struct cm_devices *d, const uint8_t dst[16], uint32_t ifindex, struct cm_addr *src,
                struct cm_route *route)
{
    bool link_local = cm_is_link_local(dst);

    if (cm_devices_source(d, dst, &(struct cm_device_choice){ifindex, link_local}, src->gid, route))
        return true;
    return (link_local || gid_is_multicast(dst)) &&
           cm_devices_source(d, dst, &(struct cm_device_choice){ifindex, !link_local}, src->gid, route);
}

static int by_kernel_route(const struct cm_devices *d, const struct cm_addr *dst, uint32_t scope, struct cm_addr *src,
                           struct cm_route *route)
{
    struct route_info info;
    uint8_t gid[16];
    union addr a;

    cm_addr_to_net(dst, scope, &a);
    int rc = route_lookup(&a, scope, &info);
    if (rc == 0 && info.has_source) {
        addr_to_gid(&info.source, gid);
        if (cm_devices_find(d, gid, scope, route)) {
            memcpy(src->gid, gid, sizeof(gid));
            return 0;
        }
    }
    if (rc == 0 && use(d, dst->gid, info.ifindex, src, route))
        return 0;
    if ((rc == 0 && info.is_local) || gid_is_multicast(dst->gid))
        rc = use(d, dst->gid, 0, src, route) ? 0 : -ENODEV;
    return rc == 0 && route->device == CM_NO_DEVICE ? -ENODEV : rc;
}

/* Replaces a wildcard by the address of the first device. */
static int this_host(const struct cm_devices *d, struct cm_addr *dst)
{
    uint8_t gid[16] = {[0] = 0x20}; /* like a global address of IPv6 */
    struct cm_route route;

    if (!dst->v6)
        gid_from_v4(gid, (const uint8_t[4]){127, 0, 0, 1});
    return cm_devices_source(d, gid, &(struct cm_device_choice){0}, dst->gid, &route) ? 0 : -ENODEV;
}

/* 127.0.0.0/8 and ::1 */
static bool is_loopback(const uint8_t gid[16])
{
    static const uint8_t localhost6[16] = {[15] = 1};

    return memcmp(gid, localhost6, sizeof(localhost6)) == 0 || (gid_is_v4(gid) && gid[GID_V4_AT] == 127);
}

/* Has the daemon a device on the loopback interface? Then such addresses may be those of other daemons. */
static bool is_on_loopback(const struct cm_devices *d)
{
    for (unsigned i = 0; i < d->n; i++) {
        if (d->info[i].ifindex == LOOPBACK_IFINDEX)
            return true;
    }
    return false;
}

int cm_resolve_route_to(const struct cm_devices *d, struct cm_addr *dst, uint32_t scope, struct cm_addr *src,
                        struct cm_route *route)
{
    route->device = CM_NO_DEVICE;
    if (cm_addr_is_wildcard(dst) || (is_loopback(dst->gid) && !is_on_loopback(d))) {
        int rc = this_host(d, dst);
        if (rc)
            return rc;
    }
    src->v6 = dst->v6;
    if (!cm_addr_is_wildcard(src))
        return cm_devices_find(d, src->gid, scope, route) ? 0 : -ENODEV;
    if (cm_devices_find(d, dst->gid, scope, route)) {
        memcpy(src->gid, dst->gid, sizeof(src->gid));
        return 0;
    }
    return by_kernel_route(d, dst, scope, src, route);
}
