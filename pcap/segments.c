// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/segments.h"

#include "wire/icrc.h"

static bool is_right(const struct decap *d, uint16_t index, size_t at, size_t n)
{
    return n >= BTH_LEN + ICRC_LEN &&
           decap_icrc(d, index, d->payload + at, n - ICRC_LEN) == icrc_load(d->payload + at + n - ICRC_LEN);
}

bool segments_is_packet(const struct decap *d)
{
    return d->caplen == d->len && is_right(d, 0, 0, d->len);
}

/* True if the payload is a sequence of packets of `size` bytes each (the last may be shorter) and all ICRCs are
 * right. */
static bool is_sequence(const struct decap *d, size_t size, unsigned step)
{
    size_t at = 0;
    uint16_t index = 0;

    while (at < d->len) {
        size_t n = d->len - at < size ? d->len - at : size;

        if (!is_right(d, index, at, n))
            return false;
        at += n;
        index = (uint16_t)(index + step);
    }
    return true;
}

size_t segments_size(const struct decap *d, unsigned *step)
{
    size_t most = d->len <= SEGMENTS_PACKET_MAX ? d->len - (d->len ? 1 : 0) : SEGMENTS_PACKET_MAX;

    for (*step = 0; *step < 2; (*step)++)
        for (size_t size = BTH_LEN + ICRC_LEN; size <= most; size += 4)
            if (is_sequence(d, size, *step))
                return size;
    return 0;
}
