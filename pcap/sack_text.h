// SPDX-License-Identifier: BSD-2-Clause
/* Describes selective acknowledgements (wire/pumice/sack.h) in a line, for the comments of captures. */
#ifndef PUMICE_PCAP_SACK_TEXT_H
#define PUMICE_PCAP_SACK_TEXT_H

#include "wire/pumice/sack.h"

#define SACK_TEXT_MAX 256 /* bytes of the longest text with its end */

/* Writes for example "SACK for QP 0x000012: PSNs 5, 9 ... 11 missing before 20, newest 19". The newest packet that
 * came has a later PSN, if the SACK does not describe all gaps. */
void sack_text(const struct sack *s, char text[SACK_TEXT_MAX]);

#endif
