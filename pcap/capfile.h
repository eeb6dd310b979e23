// SPDX-License-Identifier: BSD-2-Clause
/* A pcapng file of UDP payloads: pcapng.h and frame.h put together over a stdio stream. Not thread-safe. */
#ifndef PUMICE_PCAP_CAPFILE_H
#define PUMICE_PCAP_CAPFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pcap/frame.h"
#include "pcap/pcapng.h"

struct capfile {
    FILE *stream; /* ours from open to close */
    uint8_t *block; /* one block under construction; grows as needed */
    size_t cap; /* bytes that block has room for */
    uint32_t interfaces; /* how many there are so far */
};

/* Creates (or truncates) path and writes the section header. Returns 0 or -errno; after an error there's nothing to
 * close. */
int capfile_open(struct capfile *c, const char *path, const char *application);

/* The same for a stream that is open, from where it stands; it becomes ours, after an error, too. */
int capfile_start(struct capfile *c, FILE *stream, const char *application);

/* Adds an interface; returns its number, or -errno. */
int capfile_add_interface(struct capfile *c, const char *name);

/* Appends the UDP payload[0 ... len) with headers made up for flow, as seen on the interface at time_ns. comment may
 * be NULL. flow->cut further bytes of payload are
 * missing. Returns 0 or -errno (-EINVAL: no such interface; -EMSGSIZE: len above FRAME_PAYLOAD_MAX). */
int capfile_add_udp(struct capfile *c, uint32_t interface, uint64_t time_ns, const struct frame_flow *flow,
                    const uint8_t *payload, size_t len, enum pcapng_direction direction, const char *comment);

/* Appends what is known of an interface's losses (pcapng_statistics). Returns 0 or -errno. */
int capfile_add_statistics(struct capfile *c, uint32_t interface, uint64_t time_ns, uint64_t packets, uint64_t dropped);

/* Writes out and closes; frees what c holds. Returns 0, or -errno if something couldn't be written. */
int capfile_close(struct capfile *c);

#endif
