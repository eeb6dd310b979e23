// SPDX-License-Identifier: BSD-2-Clause
#include "wire/mad.h"

#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

void mad_decode(const uint8_t mad[MAD_LEN], struct mad_header *out)
{
    uint16_t reserved;
    const uint8_t *p = mad;

    p = get_u8(p, &out->base_version);
    p = get_u8(p, &out->mgmt_class);
    p = get_u8(p, &out->class_version);
    p = get_u8(p, &out->method);
    p = get_be16(p, &out->status);
    p = get_be16(p, &out->class_specific);
    p = get_be64(p, &out->transaction_id);
    p = get_be16(p, &out->attribute_id);
    p = get_be16(p, &reserved);
    get_be32(p, &out->attribute_modifier);
}

void mad_encode(const struct mad_header *h, uint8_t *dst)
{
    uint8_t *p = dst;

    p = put_u8(p, h->base_version);
    p = put_u8(p, h->mgmt_class);
    p = put_u8(p, h->class_version);
    p = put_u8(p, h->method);
    p = put_be16(p, h->status);
    p = put_be16(p, h->class_specific);
    p = put_be64(p, h->transaction_id);
    p = put_be16(p, h->attribute_id);
    p = put_be16(p, 0);
    put_be32(p, h->attribute_modifier);
}

const uint8_t *mad_of_packet(const uint8_t *pkt, size_t len)
{
    if (len < BTH_LEN + DETH_LEN + MAD_LEN || bth_opcode(pkt) != (OP_SERVICE_UD | OP_SEND_ONLY) ||
        bth_dest_qpn(pkt) != MAD_QPN)
        return NULL;
    return pkt + BTH_LEN + DETH_LEN;
}
