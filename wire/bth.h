// SPDX-License-Identifier: BSD-2-Clause
/* Single fields of a base transport header (BTH) as it stands in a packet (IBTA 9.2), for code that needs one or two of
 * them and not the whole packet (wire/pkt.h). bth points to its first byte; BTH_LEN bytes must be there. */
#ifndef PUMICE_WIRE_BTH_H
#define PUMICE_WIRE_BTH_H

#include <stdint.h>

#include "wire/bytes.h"

/* Offset of the byte with FECN, BECN and reserved bits. The ICRC does not cover it: it counts as all ones. */
#define BTH_UNCOVERED_BYTE 4

static inline uint8_t bth_opcode(const uint8_t *bth)
{
    return bth[0];
}

static inline uint32_t bth_dest_qpn(const uint8_t *bth)
{
    uint32_t qpn;

    get_be24(bth + 5, &qpn);
    return qpn;
}

#endif
