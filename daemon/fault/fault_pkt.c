// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault_pkt.h"

#include "wire/bth.h"
#include "wire/cm_msg.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/tmh.h"

/* Only the first packet of a SEND can begin with a tag matching header. */
static uint8_t tm_of(uint8_t opcode, const uint8_t *p, size_t len)
{
    const struct op_info *op = &op_table[opcode];
    struct tmh h;

    if (!(op->properties & OP_IS_SEND) || !(op->properties & (OP_IS_FIRST | OP_IS_ONLY)) ||
        len < op->header_len + (size_t)ICRC_LEN ||
        !tmh_decode(p + op->header_len, len - op->header_len - ICRC_LEN, &h) || h.opcode > TMH_EAGER)
        return 0;
    return (uint8_t)(1 + h.opcode);
}

void fault_pkt_read(struct fault_pkt *f, const uint8_t *p, size_t len)
{
    f->opcode = bth_opcode(p);
    f->dest_qpn = bth_dest_qpn(p);
    f->psn = bth_psn(p);
    /* Only responses have an AETH, and it follows the BTH. */
    f->syndrome = op_table[f->opcode].headers & OP_HAS_AETH && len > BTH_LEN ? p[BTH_LEN] : 0;
    f->cm_attribute = f->dest_qpn == MAD_QPN ? cm_attribute_of_packet(p, len) : 0;
    f->tm = f->dest_qpn == MAD_QPN ? 0 : tm_of(f->opcode, p, len);
}

bool fault_is_ack(uint8_t opcode)
{
    uint8_t operation = opcode & OP_OPERATION_MASK;

    return (op_table[opcode].properties & OP_IS_RESPONSE) && (operation == OP_ACK || operation == OP_ATOMIC_ACK);
}
