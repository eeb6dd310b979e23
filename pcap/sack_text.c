// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/sack_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/pkt.h"

#define GAPS_SHOWN 6u

/* The last PSN before `end`. */
static uint32_t last_before(uint32_t end)
{
    return (end - 1) & PSN_MASK;
}

void sack_text(const struct sack *s, char text[SACK_TEXT_MAX])
{
    int n = snprintf(text, SACK_TEXT_MAX, "SACK for QP 0x%06" PRIx32 ": PSN%s ", s->requester,
                     s->gaps > 1 || last_before(s->gap[0].end) != s->gap[0].start ? "s" : "");

    for (uint32_t i = 0; i < s->gaps && i < GAPS_SHOWN; i++) {
        n += snprintf(text + n, SACK_TEXT_MAX - (size_t)n, "%s%" PRIu32, i ? ", " : "", s->gap[i].start);
        if (last_before(s->gap[i].end) != s->gap[i].start)
            n += snprintf(text + n, SACK_TEXT_MAX - (size_t)n, " ... %" PRIu32, last_before(s->gap[i].end));
    }
    if (s->gaps > GAPS_SHOWN)
        n += snprintf(text + n, SACK_TEXT_MAX - (size_t)n, " and %" PRIu32 " more gaps", s->gaps - GAPS_SHOWN);
    snprintf(text + n, SACK_TEXT_MAX - (size_t)n, " missing before %" PRIu32 ", newest %" PRIu32 "%s", s->end,
             last_before(s->newest), sack_is_far(s) ? " or later" : "");
}
