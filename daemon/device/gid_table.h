// SPDX-License-Identifier: BSD-2-Clause
/* The GID table of a device, which gid_follow.h fills in. Its first entries are the addresses that were configured. The other addresses of the
 * interface follow, as long as they exist; a device on the loopback interface has only the configured ones, because
 * that interface has the addresses of many virtual hosts.
 *
 * An address keeps its index while the daemon runs. If the interface loses the address, the entry is absent: the table
 * of the clients shows it as empty. If the address comes back, it gets the same entry. A new address takes an entry that
 * was never used, and if there is none, the first absent one. */
#ifndef PUMICE_DAEMON_DEVICE_GID_TABLE_H
#define PUMICE_DAEMON_DEVICE_GID_TABLE_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/base/types.h"
#include "daemon/net/address.h"

struct device;

/* After a packet to or from an address, each pass receives from its socket for this long. */
#define GID_HOT_NS 100000000ull

struct gid_entry {
    struct device *device;
    bool used; /* the entry has or had an address, and there is a socket for it */
    bool present; /* the interface has the address */
    bool configured; /* never given to another address */
    union addr addr; /* port 0 */
    uint8_t gid[16];
    /* Each pass reads the first socket, which does not use these two. A pass reads another socket until hot_until. After
     * that, the loop's poll has to report data first. */
    ev_io readable;
    uint64_t hot_until;
};

struct gid_table {
    unsigned n; /* 1 + the highest index in use */
    bool full; /* an address found no room; reported once */
    struct gid_entry entry[ENGINE_MAX_GIDS];
};

/* Returns the entry that has or had the address, or NULL. */
struct gid_entry *gid_table_find(struct gid_table *t, const union addr *addr);
/* Returns an index for a new address, or -1 if the table is full. */
int gid_table_free_index(const struct gid_table *t);

/* Returns the entry of a GID index, or NULL if there is no such entry or its address is absent. */
const struct gid_entry *gid_table_at(const struct gid_table *t, unsigned index);

/* Returns the index of the best source address for packets to dgid, or -1 if no address has its family. A link-local
 * destination is best reached from a link-local address, and others from others. Multicast groups are mapped, so any
 * address reaches them. */
int gid_table_source(const struct gid_table *t, const uint8_t dgid[16]);

/* Returns the first present entry of the family (AF_INET, AF_INET6), or NULL. */
const struct gid_entry *gid_table_of_family(const struct gid_table *t, int family);

/* Is it one of the device's addresses? Called for each packet. */
static inline bool gid_table_has(const struct gid_table *t, const uint8_t gid[16])
{
    for (unsigned i = 0; i < t->n; i++) {
        if (memcmp(t->entry[i].gid, gid, 16) == 0)
            return true;
    }
    return false;
}

#endif
