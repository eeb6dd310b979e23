// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/gid_table.h"

#include "wire/gid.h"

struct gid_entry *gid_table_find(struct gid_table *t, const union addr *addr)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (t->entry[i].used && addr_has_gid(addr, t->entry[i].gid))
            return &t->entry[i];
    }
    return NULL;
}

int gid_table_free_index(const struct gid_table *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (!t->entry[i].used)
            return (int)i;
    }
    if (t->n < ENGINE_MAX_GIDS)
        return (int)t->n;
    for (unsigned i = 0; i < t->n; i++) {
        if (!t->entry[i].present && !t->entry[i].configured)
            return (int)i;
    }
    return -1;
}

const struct gid_entry *gid_table_at(const struct gid_table *t, unsigned index)
{
    return index < t->n && t->entry[index].present ? &t->entry[index] : NULL;
}

static bool is_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

int gid_table_source(const struct gid_table *t, const uint8_t dgid[16])
{
    int found = -1;

    for (unsigned i = 0; i < t->n; i++) {
        const struct gid_entry *e = &t->entry[i];

        if (!e->present || (!gid_is_multicast(dgid) && gid_is_v4(e->gid) != gid_is_v4(dgid)))
            continue;
        if (gid_is_multicast(dgid) || is_link_local(e->gid) == is_link_local(dgid))
            return (int)i;
        found = found < 0 ? (int)i : found;
    }
    return found;
}

const struct gid_entry *gid_table_of_family(const struct gid_table *t, int family)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (t->entry[i].present && t->entry[i].addr.sa.sa_family == family)
            return &t->entry[i];
    }
    return NULL;
}
