// SPDX-License-Identifier: BSD-2-Clause
/* Reads captures: classic pcap by libpcap, pcapng by code of its own. libpcap hides parts of pcapng that the linter
 * needs: the interface and the direction of a packet, and the number of packets that the capture lost. It also refuses
 * files whose interfaces have different link types. The input is not trusted: any bytes are handled. */
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
    int linktype; /* LINKTYPE_ number (those of the file formats, not libpcap's DLT_) */
    enum pcapng_direction direction;
    const uint8_t *data; /* valid until the next call */
    const char *comment; /* comment_len bytes, valid until the next call; NULL: none */
    size_t comment_len;
};

struct capread; /* a reader of one capture */

/* Opens a capture. Reads f from its current position; f need not be seekable. On success the reader owns f, and
 * capread_close closes it. Returns NULL if f is no capture: error says why, and the caller still owns f. */
struct capread *capread_open(FILE *f, char error[CAPREAD_ERROR]);

/* Reads the next frame. Returns 1; 0 at the end; -1 if the rest can't be read (for example if the file ends within a
 * frame): error then says why. */
int capread_next(struct capread *c, struct capread_frame *out, char error[CAPREAD_ERROR]);

/* Number of packets that the capture itself has lost, by its interface statistics (pcapng) up to here. */
uint64_t capread_lost(const struct capread *c);

void capread_close(struct capread *c);

#endif
