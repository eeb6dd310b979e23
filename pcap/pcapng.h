// SPDX-License-Identifier: BSD-2-Clause
/* Writes pcapng (draft-ietf-opsawg-pcapng) blocks into the caller's memory. Pure: no I/O, no state. A capture is one
 * section block, then the interface blocks (the first is interface 0, and so on), then packets. An interface block may
 * also come later, but before the first packet of its interface. The files are little-endian, with link type Ethernet
 * and timestamps in nanoseconds.
 *
 * All functions return the size of the block. They write the block to dst if it fits into cap bytes. Otherwise they
 * leave dst unchanged. So a call with cap 0 (dst may be NULL) only returns the size. */
#ifndef PUMICE_PCAP_PCAPNG_H
#define PUMICE_PCAP_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

/* Section header block. application: the program that writes the file (shb_userappl); may be NULL. */
size_t pcapng_section(uint8_t *dst, size_t cap, const char *application);

/* Interface description block. name: the interface's name, as readers show it; may be NULL. */
size_t pcapng_interface(uint8_t *dst, size_t cap, const char *name);

enum pcapng_direction {
    PCAPNG_DIR_UNKNOWN = 0,
    PCAPNG_DIR_IN = 1,
    PCAPNG_DIR_OUT = 2,
};

/* A packet in two parts: made-up headers and captured bytes. So the caller does not copy them into one buffer. */
struct pcapng_packet {
    uint32_t interface; /* number of its interface block in the section */
    enum pcapng_direction direction;
    uint64_t time_ns; /* since 1970, UTC */
    const uint8_t *head; /* first head_len bytes of the frame; may be NULL if head_len is 0 */
    size_t head_len;
    const uint8_t *data; /* the other len bytes */
    size_t len;
    size_t cut; /* bytes at the end of the frame that were not captured */
    const char *comment; /* UTF-8, cut after 65535 bytes; NULL or "" for none */
};

/* Enhanced packet block. head_len + len must be less than 2^31. */
size_t pcapng_packet(uint8_t *dst, size_t cap, const struct pcapng_packet *p);

/* Interface statistics block: up to time_ns (since 1970), `packets` packets passed the capture's filters at this
 * interface. `dropped` of them were lost because the buffer was full. comment:
 * as in a packet. */
size_t pcapng_statistics(uint8_t *dst, size_t cap, uint32_t interface, uint64_t time_ns, uint64_t packets,
                         uint64_t dropped, const char *comment);

#endif
