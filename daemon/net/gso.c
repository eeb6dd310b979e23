// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/gso.h"

#include <string.h>

static bool same_destination(const struct av *a, const struct av *b)
{
    return a == b || (memcmp(a->dgid, b->dgid, sizeof(a->dgid)) == 0 && a->sgid_index == b->sgid_index &&
                      a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit);
}

unsigned gso_span(const struct tx_pkt *pkt, unsigned n)
{
    uint32_t bytes = pkt[0].len;
    unsigned i;

    for (i = 1; i < n && i < GSO_MAX_SEGMENTS; i++) {
        if (pkt[i].len > pkt[0].len || bytes + pkt[i].len > GSO_MAX_BYTES)
            break;
        if (pkt[i].off != pkt[0].off + bytes || pkt[i].cnp != pkt[0].cnp || !same_destination(pkt[i].av, pkt[0].av))
            break;
        bytes += pkt[i].len;
        if (pkt[i].len < pkt[0].len)
            return i + 1; /* the shorter packet is the last of the send */
    }
    return i;
}
