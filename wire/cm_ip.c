// SPDX-License-Identifier: BSD-2-Clause
#include "wire/cm_ip.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"

#define VERSION 0u /* major and minor version of the header, a nibble each */

uint64_t cm_service_id(uint16_t port_space, uint16_t port)
{
    return (uint64_t)port_space << 16 | port;
}

bool cm_ip_header_decode(const uint8_t data[CM_IP_HEADER_LEN], struct cm_ip_header *out)
{
    uint8_t version, ip;
    uint16_t port;
    const uint8_t *p = data;

    p = get_u8(p, &version);
    p = get_u8(p, &ip);
    p = get_be16(p, &port);
    if (version != VERSION || (ip >> 4 != 4 && ip >> 4 != 6))
        return false;
    out->ip_version = ip >> 4;
    out->source_port = port;
    memcpy(out->source, p, 16);
    memcpy(out->destination, p + 16, 16);
    if (out->ip_version == 4) { /* the last four bytes are the address, the others are not used */
        gid_from_v4(out->source, p + 12);
        gid_from_v4(out->destination, p + 28);
    }
    return true;
}

void cm_ip_header_encode(const struct cm_ip_header *h, uint8_t data[CM_IP_HEADER_LEN])
{
    uint8_t *p = data;

    p = put_u8(p, VERSION);
    p = put_u8(p, (uint8_t)(h->ip_version << 4));
    p = put_be16(p, h->source_port);
    memset(p, 0, 32);
    if (h->ip_version == 4) {
        memcpy(p + 12, h->source + 12, 4);
        memcpy(p + 28, h->destination + 12, 4);
    } else {
        memcpy(p, h->source, 16);
        memcpy(p + 16, h->destination, 16);
    }
}
