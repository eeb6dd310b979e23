// SPDX-License-Identifier: BSD-2-Clause
/* Reads single fields of a base transport header (BTH, IBTA 9.2) in a packet. It is for code that needs only one or two
 * fields; wire/pkt.h decodes the whole packet. bth points to the first of the BTH_LEN bytes. */
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

static inline uint32_t bth_psn(const uint8_t *bth)
{
    uint32_t psn;

    get_be24(bth + 9, &psn);
    return psn;
}

#endif
