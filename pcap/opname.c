// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/opname.h"

#include <stdio.h>
#include <string.h>

#include "wire/opcode.h"

unsigned opname_match(const char *text, uint64_t set[4])
{
    unsigned n = 0;
    char name[64];

    for (unsigned o = 0; o < 256; o++) {
        if (!op_table[o].name)
            continue;
        snprintf(name, sizeof(name), "%s %s", op_service_name((uint8_t)o), op_table[o].name);
        if (!strcasestr(name, text))
            continue;
        set[o / 64] |= 1ull << o % 64;
        n++;
    }
    return n;
}
