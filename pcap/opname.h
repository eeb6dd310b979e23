// SPDX-License-Identifier: BSD-2-Clause
/* Opcodes by name, for filters. */
#ifndef PUMICE_PCAP_OPNAME_H
#define PUMICE_PCAP_OPNAME_H

#include <stddef.h>
#include <stdint.h>

/* Sets the bit (o % 64) of set[o / 64] for each opcode o whose full name ("RC SEND Only", "XRC RDMA WRITE First", as
 * Wireshark spells them) contains text, capital letters or not; the other bits stay. Returns how many fit. */
unsigned opname_match(const char *text, uint64_t set[4]);

#endif
