// SPDX-License-Identifier: BSD-2-Clause
/* Writes UDP payloads to a stdio stream as a pcapng file. Takes the blocks from pcapng.h and the headers from frame.h.
 * Not thread-safe. */
#ifndef PUMICE_PCAP_CAPFILE_H
#define PUMICE_PCAP_CAPFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pcap/frame.h"
#include "pcap/pcapng.h"

struct capfile {
    FILE *stream; /* owned from open to close */
    uint8_t *block; /* the block under construction; grows as needed */
    size_t cap; /* size of block, bytes */
    uint32_t interfaces; /* number of interface blocks written so far */
};

/* Creates (or truncates) path and writes the section header. Returns 0 or -errno. After an error there is nothing to
 * close. */
int capfile_open(struct capfile *c, const char *path, const char *application);

/* Like capfile_open, for an open stream: writes from its current position. c owns the stream from now on. After an
 * error the stream is closed. */
int capfile_start(struct capfile *c, FILE *stream, const char *application);

/* Adds an interface; returns its number, or -errno. */
int capfile_add_interface(struct capfile *c, const char *name);

/* Appends the UDP payload[0 ... len), with headers made for flow, as captured at the interface at time_ns. flow->cut
 * more bytes of the payload were not captured. comment may be NULL. Returns 0 or -errno (-EINVAL: no such interface;
 * -EMSGSIZE: len is above FRAME_PAYLOAD_MAX). */
int capfile_add_udp(struct capfile *c, uint32_t interface, uint64_t time_ns, const struct frame_flow *flow,
                    const uint8_t *payload, size_t len, enum pcapng_direction direction, const char *comment);

/* Appends the numbers of packets that an interface has seen and dropped, with a comment
 * (pcapng_statistics; NULL: none). Returns 0 or -errno. */
int capfile_add_statistics(struct capfile *c, uint32_t interface, uint64_t time_ns, uint64_t packets, uint64_t dropped,
                           const char *comment);

/* Flushes and closes the file, and frees what c holds. Returns 0, or -errno if not everything could be written. */
int capfile_close(struct capfile *c);

#endif
