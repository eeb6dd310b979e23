// SPDX-License-Identifier: BSD-2-Clause
/* Writes and reads the comments that packets have in Pumice's captures. Users read them. The linter reads them too,
 * because a packet itself does not name the QP that sent it. */
#ifndef PUMICE_PCAP_NOTE_H
#define PUMICE_PCAP_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sack;

#define NOTE_MAX 512 /* bytes of the text with its end */
#define NOTE_COMM 16 /* bytes of the process's name, as in Linux (TASK_COMM_LEN) */

/* Injected faults that struck a packet. */
enum note_fault {
    NOTE_LOST = 1, /* the packet was not sent */
    NOTE_DAMAGED = 2,
    NOTE_TWICE = 4,
    NOTE_LATE = 8,
    NOTE_MARKED = 16, /* with congestion experienced */
};

struct note {
    uint32_t qpn; /* the QP that sent the packet; for an incoming packet, the QP that receives it; 0: not known */
    uint32_t pid; /* the process that owns the QP; 0: not known */
    /* Name of the process. It has no final 0 if it fills the array. note_parse does not set it. */
    char comm[NOTE_COMM];
    bool has_wr;
    uint64_t wr_id; /* of the work request, if has_wr */
    bool retransmit; /* a retransmission */
    bool inside; /* the packet stayed within the device */
    bool before; /* captured before injected faults, which may have dropped or changed it */
    uint8_t faults; /* set of enum note_fault */
    /* The MAD in the packet, MAD_LEN bytes, which the comment describes; NULL: none. note_parse does not set it. */
    const uint8_t *mad;
    const struct sack *sack; /* the SACK in the packet, the same */
};

/* Writes the comment. It is "" if nothing is known. */
void note_format(const struct note *n, char text[NOTE_MAX]);

/* Reads a comment of len bytes. The comment is not trusted, because other programs write comments too. If it does not
 * name a QP in this form, sets *out to all 0 and returns false. */
bool note_parse(const char *text, size_t len, struct note *out);

/* Reads the name of the process from a comment that note_parse accepts. Sets comm to "" if there is none. The name is not
 * trusted: it may hold any bytes. */
void note_comm(const char *text, size_t len, char comm[NOTE_COMM + 1]);

/* Writes the comment of an interface's statistics: that faults lost n packets that would have been captured. */
void note_format_lost(uint64_t n, char text[NOTE_MAX]);

/* Reads such a comment; returns n. Any other text: 0. */
uint64_t note_lost(const char *text, size_t len);

/* Reads the faults of a comment, also if it names no QP. Returns a set of enum note_fault. */
uint8_t note_faults(const char *text, size_t len);

#endif
