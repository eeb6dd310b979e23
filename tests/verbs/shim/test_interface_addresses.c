// SPDX-License-Identifier: BSD-2-Clause
/* getifaddrs lists the addresses of devices on the loopback interface, which libfabric needs. All else is as before. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "tests/verbs/vt.h"

static char device[IF_NAMESIZE];

/* The entry of an interface with an address of this family, or NULL. */
static const struct ifaddrs *find(const struct ifaddrs *list, const char *name, int family)
{
    for (; list; list = list->ifa_next)
        if (list->ifa_addr && list->ifa_addr->sa_family == family && strcmp(list->ifa_name, name) == 0)
            return list;
    return NULL;
}

static void listed(void)
{
    struct ifaddrs *list;
    union ibv_gid gid;
    struct ibv_context *c = vt_open();
    need(c && ibv_query_gid(c, 1, 0, &gid) == 0);
    need(getifaddrs(&list) == 0);
    const struct ifaddrs *a = find(list, device, AF_INET);
    ok(a != NULL, "the list has an interface with the name of the device");
    if (a) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)a->ifa_addr;
        ok(memcmp(&in->sin_addr, gid.raw + 12, 4) == 0, "its address is that of the device");
        ok((a->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP, "it is up, and libfabric does not pass over it");
        ok(a->ifa_netmask && a->ifa_netmask->sa_family == AF_INET, "it has a mask");
    }
    ok(find(list, "lo", AF_INET) != NULL, "the other interfaces are there, too");
    freeifaddrs(list);
    ibv_close_device(c);
}

static void many_lists(void)
{
    struct ifaddrs *lists[100];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++)
            need(getifaddrs(&lists[i]) == 0);
        int good = 0;
        for (int i = 0; i < 100; i++)
            good += find(lists[i], device, AF_INET) != NULL;
        ok(good == 100, "each of many lists has the device");
        for (int i = round ? 0 : 99; i >= 0 && i < 100; i += round ? 1 : -1)
            freeifaddrs(lists[i]);
    }
    freeifaddrs(NULL);
}

int main(void)
{
    VT_OWN("addresses of interfaces");
    struct ibv_device **devices = ibv_get_device_list(NULL);
    need(devices && devices[0]);
    snprintf(device, sizeof(device), "%s", ibv_get_device_name(devices[0]));
    ibv_free_device_list(devices);
    listed();
    many_lists();
    return vt_failed;
}
