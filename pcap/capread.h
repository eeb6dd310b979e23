// SPDX-License-Identifier: BSD-2-Clause
/* Reads captures: classic pcap by libpcap, pcapng by itself, because libpcap hides what a judge of captures needs of
 * it (which interface saw a packet, in which direction, how many the capture lost) and refuses files whose interfaces
 * have different link types. Input may be anything; nothing of it is believed. */
#ifndef PUMICE_PCAP_CAPREAD_H
#define PUMICE_PCAP_CAPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pcap/pcapng.h"

#define CAPREAD_ERROR 256 /* bytes of room for a message */
#define CAPREAD_FRAME_MAX (1 << 18) /* bytes of a frame; longer ones make the file unreadable */

struct capread_frame {
    uint64_t time_ns; /* since 1970 */
    uint32_t number; /* from 1, as Wireshark counts */
    uint32_t interface; /* number in the file; 0 for classic pcap */
    uint32_t len; /* bytes that the frame had */
    uint32_t caplen; /* bytes that were captured */
    int linktype; /* LINKTYPE_ number (those of the file formats, not libpcap's DLT_) */
    enum pcapng_direction direction;
    const uint8_t *data; /* valid until the next call */
    const char *comment; /* likewise, comment_len bytes; NULL: it has none */
    size_t comment_len;
};

struct capread; /* a capture that is being read */

/* Takes f, which is read from where it stands and needn't be seekable, and which capread_close will close. NULL: it is
 * no capture, error says why, and f is still the caller's. */
struct capread *capread_open(FILE *f, char error[CAPREAD_ERROR]);

/* The next frame. 1; 0 at the end; -1 if the rest can't be read, and error says why (a file that ends within a frame
 * is one such). */
int capread_next(struct capread *c, struct capread_frame *out, char error[CAPREAD_ERROR]);

/* Packets that the capture says it has lost (interface statistics of pcapng), so far. */
uint64_t capread_lost(const struct capread *c);

void capread_close(struct capread *c);

#endif
