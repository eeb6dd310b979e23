// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/interface_addresses.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/verbs/base/api.h"
#include "src/verbs/shim/libc_next.h"

#define CLASS "/sys/class/infiniband"
#define LOOPBACK "lo"
#define ENTRIES_MAX 32 /* of all devices of a daemon */
#define GIDS_MAX 32 /* of a device; some have each address twice */

struct entry {
    struct ifaddrs ifa;
    char name[IF_NAMESIZE];
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address, mask;
};

/* Entries of this library at the end of a list of the C library. They live until that list is freed. */
struct extension {
    struct extension *next;
    const struct ifaddrs *list;
    size_t count;
    struct entry entries[ENTRIES_MAX];
};
static struct extension *extensions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Reads an attribute of a device into text. Returns false if there is none, or only an empty one. */
static bool attribute(const char *device, const char *name, char *text, size_t size)
{
    char path[256];
    if (snprintf(path, sizeof(path), CLASS "/%s/ports/1/%s", device, name) >= (int)sizeof(path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

static void fill(struct entry *e, const char *device, const struct in6_addr *gid)
{
    memset(e, 0, sizeof(*e));
    snprintf(e->name, sizeof(e->name), "%s", device);
    if (IN6_IS_ADDR_V4MAPPED(gid)) {
        e->address.v4.sin_family = e->mask.v4.sin_family = AF_INET;
        memcpy(&e->address.v4.sin_addr, gid->s6_addr + 12, 4);
        memset(&e->mask.v4.sin_addr, 0xff, 4);
    } else {
        e->address.v6.sin6_family = e->mask.v6.sin6_family = AF_INET6;
        e->address.v6.sin6_addr = *gid;
        memset(&e->mask.v6.sin6_addr, 0xff, 16);
    }
    e->ifa.ifa_name = e->name;
    e->ifa.ifa_flags = IFF_UP | IFF_RUNNING;
    e->ifa.ifa_addr = &e->address.any;
    e->ifa.ifa_netmask = &e->mask.any;
}

/* Adds the addresses that a device has on the loopback interface. */
static void add_device(struct extension *x, const char *device)
{
    for (int i = 0; i < GIDS_MAX && x->count < ENTRIES_MAX; i++) {
        char name[64], text[64];
        struct in6_addr gid;
        snprintf(name, sizeof(name), "gid_attrs/ndevs/%d", i);
        if (!attribute(device, name, text, sizeof(text)) || strcmp(text, LOOPBACK) != 0)
            continue;
        snprintf(name, sizeof(name), "gid_attrs/types/%d", i);
        if (!attribute(device, name, text, sizeof(text)) || strcmp(text, "RoCE v2") != 0)
            continue;
        snprintf(name, sizeof(name), "gids/%d", i);
        if (attribute(device, name, text, sizeof(text)) && inet_pton(AF_INET6, text, &gid) == 1 &&
            !IN6_IS_ADDR_UNSPECIFIED(&gid))
            fill(&x->entries[x->count++], device, &gid);
    }
}

static void add_devices(struct extension *x)
{
    DIR *dir = opendir(CLASS);
    if (!dir)
        return;
    for (const struct dirent *d; (d = readdir(dir)) != NULL;)
        if (d->d_name[0] != '.' && strlen(d->d_name) < IF_NAMESIZE)
            add_device(x, d->d_name);
    closedir(dir);
}

/* Appends the entries to the list. */
static void append(struct ifaddrs *list, struct extension *x)
{
    struct ifaddrs *last = list;
    while (last->ifa_next)
        last = last->ifa_next;
    for (size_t i = 0; i < x->count; i++) {
        last->ifa_next = &x->entries[i].ifa;
        last = last->ifa_next;
    }
    x->list = list;
    pthread_mutex_lock(&lock);
    x->next = extensions;
    extensions = x;
    pthread_mutex_unlock(&lock);
}

VB_EXPORT int getifaddrs(struct ifaddrs **list)
{
    int rc = VB_NEXT(getifaddrs)(list);
    if (rc != 0 || !*list)
        return rc;
    int e = errno;
    struct extension *x = calloc(1, sizeof(*x));
    if (x)
        add_devices(x);
    if (x && x->count)
        append(*list, x);
    else
        free(x);
    errno = e;
    return rc;
}

VB_EXPORT void freeifaddrs(struct ifaddrs *list)
{
    pthread_mutex_lock(&lock);
    struct extension **at = &extensions;
    while (*at && (*at)->list != list)
        at = &(*at)->next;
    struct extension *x = *at;
    if (x)
        *at = x->next;
    pthread_mutex_unlock(&lock);
    free(x);
    VB_NEXT(freeifaddrs)(list);
}

bool vb_loopback_device_address(struct in_addr *address)
{
    struct extension *x = calloc(1, sizeof(*x));
    bool found = false;
    if (x)
        add_devices(x);
    for (size_t i = 0; x && i < x->count && !found; i++) {
        found = x->entries[i].address.any.sa_family == AF_INET;
        if (found)
            *address = x->entries[i].address.v4.sin_addr;
    }
    free(x);
    return found;
}
