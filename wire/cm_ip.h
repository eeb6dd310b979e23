// SPDX-License-Identifier: BSD-2-Clause
/* The RDMA IP CM service (IBA annex A11): service IDs that stand for IP ports, and the header with IP addresses at the
 * start of the private data of REQ and SIDR_REQ. */
#ifndef PUMICE_WIRE_CM_IP_H
#define PUMICE_WIRE_CM_IP_H

#include <stdbool.h>
#include <stdint.h>

#define CM_IP_HEADER_LEN 36u

/* Port spaces, with the values of Linux (enum rdma_ucm_port_space). */
enum cm_port_space {
    CM_PS_IPOIB = 0x0002,
    CM_PS_TCP = 0x0106,
    CM_PS_UDP = 0x0111,
    CM_PS_IB = 0x013f,
};
/* The service ID of a port: the port space in bits 16 to 31, the port in bits 0 to 15. So TCP port 4791 has the service
 * ID 0x00000000010612b7. */
uint64_t cm_service_id(uint16_t port_space, uint16_t port);

struct cm_ip_header {
    uint8_t ip_version; /* 4 or 6 */
    uint16_t source_port; /* host byte order */
    uint8_t source[16], destination[16]; /* as GIDs: IPv4 addresses as ::ffff:a.b.c.d */
};
/* False: the header has another version, or an IP version that is neither 4 nor 6. *out is then not set. */
bool cm_ip_header_decode(const uint8_t data[CM_IP_HEADER_LEN], struct cm_ip_header *out);
void cm_ip_header_encode(const struct cm_ip_header *h, uint8_t data[CM_IP_HEADER_LEN]);

#endif
