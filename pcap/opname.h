// SPDX-License-Identifier: BSD-2-Clause
/* Finds the opcodes whose name contains a text, for capture filters. */
#ifndef PUMICE_PCAP_OPNAME_H
#define PUMICE_PCAP_OPNAME_H

#include <stddef.h>
#include <stdint.h>

/* Sets bit (o % 64) of set[o / 64] for each opcode o whose full name contains text. Full names are those of Wireshark
 * ("RC SEND Only", "XRC RDMA WRITE First"). Case does not matter. The other bits stay. Returns the number of matching
 * opcodes. */
unsigned opname_match(const char *text, uint64_t set[4]);

#endif
