// SPDX-License-Identifier: BSD-2-Clause
/* Describes messages of connection management in a line, for the comments of captures and for the linter. */
#ifndef PUMICE_PCAP_CM_TEXT_H
#define PUMICE_PCAP_CM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/mad.h"

#define CM_TEXT_MAX 256 /* bytes of the longest text with its end */

/* Writes for example "RTU: comm IDs 0x00000005, 0x00000007". Of two communication IDs, the first is that of the sender.
 * The length of private data counts up to the last byte that is not 0, because a message has no other end of them. For a
 * MAD that is no message of connection management, writes its class and attribute. The bytes are not trusted. */
void cm_text(const uint8_t mad[MAD_LEN], char text[CM_TEXT_MAX]);

/* "TCP", "UDP", "IB", "IPoIB": the port space of a service ID of the IP CM service (wire/cm_ip.h). NULL: it is none. */
const char *cm_text_port_space(uint64_t service_id);

#endif
