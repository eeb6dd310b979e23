// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/netdev.h"

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/pkt.h"

static bool same_host(const struct sockaddr *sa, const union addr *addr)
{
    if (!sa || sa->sa_family != addr->sa.sa_family)
        return false;
    if (sa->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr == addr->v4.sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, &addr->v6.sin6_addr, 16) == 0;
}

static int find_name(const union addr *addr, char name[IF_NAMESIZE])
{
    struct ifaddrs *list;
    int rc = -EADDRNOTAVAIL;
    bool loopback = addr_is_loopback(addr);

    if (getifaddrs(&list) != 0)
        return -errno;
    for (const struct ifaddrs *i = list; i && rc; i = i->ifa_next) {
        if (same_host(i->ifa_addr, addr) || (loopback && (i->ifa_flags & IFF_LOOPBACK))) {
            strncpy(name, i->ifa_name, IF_NAMESIZE - 1);
            rc = 0;
        }
    }
    freeifaddrs(list);
    return rc;
}

int netdev_refresh(struct netdev *nd)
{
    struct ifreq req = {0};
    int fd, rc = 0;

    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    memcpy(req.ifr_name, nd->name, sizeof(nd->name));
    if (ioctl(fd, SIOCGIFFLAGS, &req) != 0) {
        rc = -errno;
        nd->up = false;
        goto out;
    }
    nd->up = (req.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
    nd->loopback = req.ifr_flags & IFF_LOOPBACK;
    if (ioctl(fd, SIOCGIFMTU, &req) == 0)
        nd->mtu = (unsigned)req.ifr_mtu;
    if (ioctl(fd, SIOCGIFHWADDR, &req) == 0)
        memcpy(nd->mac, req.ifr_hwaddr.sa_data, sizeof(nd->mac));
out:
    close(fd);
    return rc;
}

int netdev_find(const union addr *addr, struct netdev *nd)
{
    memset(nd, 0, sizeof(*nd));
    int rc = find_name(addr, nd->name);
    if (rc)
        return rc;
    nd->index = if_nametoindex(nd->name);
    return netdev_refresh(nd);
}

void netdev_default_address(union addr *addr)
{
    struct ifaddrs *list = NULL;
    const struct ifaddrs *best = NULL;

    memset(addr, 0, sizeof(*addr));
    addr->v4.sin_family = AF_INET;
    addr->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP))
            continue;
        if (i->ifa_addr->sa_family == AF_INET) {
            best = i;
            break;
        }
        if (!best && i->ifa_addr->sa_family == AF_INET6 &&
            !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr))
            best = i;
    }
    if (best) {
        memset(addr, 0, sizeof(*addr));
        memcpy(addr, best->ifa_addr,
               best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    }
    freeifaddrs(list);
}

uint8_t netdev_path_mtu(unsigned mtu, bool is_v6)
{
    unsigned overhead = (is_v6 ? 40 : 20) + 8 + PKT_HEADERS_MAX + ICRC_LEN;

    for (uint8_t code = 5; code >= 1; code--) {
        if ((128u << code) + overhead <= mtu)
            return code;
    }
    return 0;
}

uint64_t netdev_guid(const struct netdev *nd, const union addr *addr)
{
    uint8_t gid[16];
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

    addr_to_gid(addr, gid);
    for (unsigned i = 0; i < sizeof(nd->mac); i++)
        h = (h ^ nd->mac[i]) * 0x100000001b3ull;
    for (unsigned i = 0; i < sizeof(gid); i++)
        h = (h ^ gid[i]) * 0x100000001b3ull;
    /* EUI-64: set the universal/local bit to local, clear the group bit. */
    return (h | 0x02ull << 56) & ~(0x01ull << 56);
}
