// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/cm_devices.h"

#include <string.h>

#include "wire/gid.h"

#define HOP_LIMIT 64 /* of Linux's IPv4 and IPv6 packets by default */

void cm_devices_refresh(struct cm_devices *d)
{
    for (unsigned i = 0; i < d->n; i++)
        mad_box_device(d->box[i], &d->info[i]);
}

bool cm_is_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static bool is_empty(const uint8_t gid[16])
{
    static const uint8_t zero[16];

    return memcmp(gid, zero, sizeof(zero)) == 0;
}

static void fill_in(const struct mad_device *m, unsigned device, unsigned index, struct cm_route *route)
{
    *route = (struct cm_route){
        .device = device,
        .sgid_index = (uint8_t)index,
        .path_mtu = m->active_mtu,
        .node_guid = m->guid,
        .hop_limit = HOP_LIMIT,
    };
}

bool cm_devices_find(const struct cm_devices *d, const uint8_t gid[16], uint32_t scope, struct cm_route *route)
{
    if (is_empty(gid))
        return false;
    for (unsigned i = 0; i < d->n; i++) {
        const struct mad_device *m = &d->info[i];

        for (unsigned k = 0; k < m->num_gids; k++) {
            if (memcmp(m->gids[k], gid, sizeof(m->gids[k])) != 0 || (scope && m->scope[k] && m->scope[k] != scope))
                continue;
            fill_in(m, i, k, route);
            return true;
        }
    }
    return false;
}

static unsigned common_bits(const uint8_t a[16], const uint8_t b[16])
{
    unsigned n = 0;

    while (n < 128 && ((a[n / 8] ^ b[n / 8]) & 0x80 >> n % 8) == 0)
        n++;
    return n;
}

bool cm_devices_source(const struct cm_devices *d, const uint8_t dst[16], const struct cm_device_choice *choice,
                       uint8_t gid[16], struct cm_route *route)
{
    unsigned best = 0;
    bool found = false;

    for (unsigned i = 0; i < d->n; i++) {
        const struct mad_device *m = &d->info[i];

        for (unsigned k = 0; k < m->num_gids && (!choice->ifindex || m->ifindex == choice->ifindex); k++) {
            const uint8_t *own = m->gids[k];

            if (is_empty(own) || gid_is_v4(own) != gid_is_v4(dst) || cm_is_link_local(own) != choice->link_local)
                continue;
            unsigned bits = common_bits(own, dst);
            if (found && bits <= best)
                continue;
            found = true;
            best = bits;
            memcpy(gid, own, 16);
            fill_in(m, i, k, route);
        }
    }
    return found;
}
