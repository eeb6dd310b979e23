// SPDX-License-Identifier: BSD-2-Clause
/* Management datagrams (MADs, IBA 13.4): 256 bytes in the payload of a UD SEND Only packet between the general service
 * interfaces of two devices. These are their QPs 1, with the Q_Key MAD_QKEY. Connection management (wire/cm_msg.h) is
 * the only class that Pumice sends. */
#ifndef PUMICE_WIRE_MAD_H
#define PUMICE_WIRE_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_QPN 1u /* source and destination QP */
#define MAD_QKEY 0x80010000u /* IBA 10.2.5 */
#define MAD_LEN 256u /* bytes of each MAD */
#define MAD_HEADER_LEN 24u
#define MAD_DATA_LEN (MAD_LEN - MAD_HEADER_LEN) /* 232: the message of the class */

#define MAD_BASE_VERSION 1u
#define MAD_CLASS_CM 0x07u /* communication management */
#define MAD_CLASS_CM_VERSION 2u
#define MAD_METHOD_SEND 0x03u

/* The common header (IBA 13.4.3), in host byte order. */
struct mad_header {
    uint8_t base_version, mgmt_class, class_version, method;
    uint16_t status, class_specific;
    uint64_t transaction_id;
    uint16_t attribute_id;
    uint32_t attribute_modifier;
};

/* Reads the header of a MAD of MAD_LEN bytes. */
void mad_decode(const uint8_t mad[MAD_LEN], struct mad_header *out);
/* Writes the header, MAD_HEADER_LEN bytes. */
void mad_encode(const struct mad_header *h, uint8_t *dst);
/* The MAD in the packet pkt[0 … len), which begins with the BTH. NULL: it is no UD SEND Only packet to QP 1, or too short.
 * The ICRC need not be there. Nothing else is checked. */
const uint8_t *mad_of_packet(const uint8_t *pkt, size_t len);

#endif
