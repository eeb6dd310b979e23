// SPDX-License-Identifier: BSD-2-Clause
/* Reads captures. libpcap reads classic pcap, and code in this module reads pcapng. libpcap hides parts of pcapng that
 * the linter needs: the interface and the direction of a packet, and the number of packets that the capture lost.
 * libpcap also refuses files whose interfaces have different link types. The input is not trusted: any bytes are
 * handled. */
#ifndef PUMICE_PCAP_CAPREAD_H
#define PUMICE_PCAP_CAPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pcap/pcapng.h"

#define CAPREAD_ERROR 256 /* size of a buffer for error messages, bytes */
#define CAPREAD_FRAME_MAX (1 << 18) /* bytes of a frame; a file with a longer frame can't be read */

struct capread_frame {
    uint64_t time_ns; /* since 1970 */
    uint32_t number; /* from 1, as Wireshark counts */
    uint32_t interface; /* number in the file; 0 for classic pcap */
    uint32_t len; /* bytes of the original frame */
    uint32_t caplen; /* bytes of it that were captured */
    int linktype; /* LINKTYPE_ of the file; for classic pcap libpcap's DLT_, which differs for raw IP */
    enum pcapng_direction direction;
    const uint8_t *data; /* valid until the next call */
    const char *comment; /* comment_len bytes, valid until the next call; NULL: none */
    size_t comment_len;
};

struct capread; /* a reader of one capture */

/* Opens a capture. Reads f from its current position, without seeking. On success the reader owns f, and capread_close
 * closes it. If f is no capture, writes the reason to error and returns NULL, and the caller still owns f. */
struct capread *capread_open(FILE *f, char error[CAPREAD_ERROR]);

/* Reads the next frame. Returns 1, or 0 at the end. If the rest can't be read (for example because the file ends within
 * a frame), writes the reason to error and returns -1. */
int capread_next(struct capread *c, struct capread_frame *out, char error[CAPREAD_ERROR]);

/* The number of packets that the capture itself has lost, as its interface statistics (pcapng) up to here say. */
uint64_t capread_lost(const struct capread *c);

/* The number of packets that injected faults lost before they could be captured, as Pumice's comments on the interface
 * statistics up to here say. */
uint64_t capread_faults(const struct capread *c);

void capread_close(struct capread *c);

#endif
