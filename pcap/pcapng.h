// SPDX-License-Identifier: BSD-2-Clause
/* Writes pcapng (draft-ietf-opsawg-pcapng) blocks into the caller's memory. Pure: no I/O, no state. A capture is one
 * section block, then the interface blocks (the first is interface 0, and so on), then packets; interface blocks may
 * also come later, before their first packet. Little-endian, link type Ethernet, timestamps in nanoseconds.
 *
 * All functions return the bytes the block takes, and write it to dst if it fits into cap; otherwise dst isn't
 * touched. So a call with cap 0 (dst may be NULL) gives the size. */
#ifndef PUMICE_PCAP_PCAPNG_H
#define PUMICE_PCAP_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

/* Section header block. application: who wrote the file (shb_userappl), may be NULL. */
size_t pcapng_section(uint8_t *dst, size_t cap, const char *application);

/* Interface description block. name: what readers show as the interface's name, may be NULL. */
size_t pcapng_interface(uint8_t *dst, size_t cap, const char *name);

enum pcapng_direction {
    PCAPNG_DIR_UNKNOWN = 0,
    PCAPNG_DIR_IN = 1,
    PCAPNG_DIR_OUT = 2,
};

/* A packet in two pieces, so that headers made up for it needn't be joined with it before. */
struct pcapng_packet {
    uint32_t interface; /* number of its interface block in the section */
    enum pcapng_direction direction;
    uint64_t time_ns; /* since 1970, UTC */
    const uint8_t *head; /* first head_len bytes of the frame; may be NULL if head_len is 0 */
    size_t head_len;
    const uint8_t *data; /* the other len bytes */
    size_t len;
    size_t cut; /* bytes that the frame had behind these, but that were not captured */
    const char *comment; /* UTF-8, cut after 65535 bytes; NULL or "" for none */
};

/* Enhanced packet block. head_len + len must be less than 2^31. */
size_t pcapng_packet(uint8_t *dst, size_t cap, const struct pcapng_packet *p);

/* Interface statistics block: at time_ns (since 1970), the interface had seen so many packets that the capture's filters
 * accept, of which so many were dropped for want of room. */
size_t pcapng_statistics(uint8_t *dst, size_t cap, uint32_t interface, uint64_t time_ns, uint64_t packets,
                         uint64_t dropped);

#endif
