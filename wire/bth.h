// SPDX-License-Identifier: BSD-2-Clause
/* Reads single fields of a base transport header (BTH, IBTA 9.2) in a packet. It is for code that needs only one or two
 * fields; wire/pkt.h decodes the whole packet. bth points to the first of the BTH_LEN bytes. */
#ifndef PUMICE_WIRE_BTH_H
#define PUMICE_WIRE_BTH_H

#include <stdint.h>

#include "wire/bytes.h"

/* Offset of the byte with FECN, BECN and reserved bits. The ICRC does not cover it: it counts as all ones. */
#define BTH_UNCOVERED_BYTE 4

/* A Pumice device writes the IP ID that the ICRC of a packet covers into the six reserved bits of that byte. A receiver
 * can't see the IP ID, and needs it to check the ICRC. Other senders leave the bits 0, and all receivers ignore them
 * (IBTA 9.2). */
#define BTH_ICRC_ID_MAX 63u

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

static inline uint8_t bth_icrc_id(const uint8_t *bth)
{
    return bth[BTH_UNCOVERED_BYTE] & BTH_ICRC_ID_MAX;
}

/* id is at most BTH_ICRC_ID_MAX. */
static inline void bth_set_icrc_id(uint8_t *bth, unsigned id)
{
    bth[BTH_UNCOVERED_BYTE] = (uint8_t)((bth[BTH_UNCOVERED_BYTE] & ~BTH_ICRC_ID_MAX) | id);
}

static inline uint32_t bth_psn(const uint8_t *bth)
{
    uint32_t psn;

    get_be24(bth + 9, &psn);
    return psn;
}

#endif
