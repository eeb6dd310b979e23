// SPDX-License-Identifier: BSD-2-Clause
/* The comment of a packet in Pumice's captures. People read it, and the linter reads it too, because a packet itself
 * does not name the QP that sent it. */
#ifndef PUMICE_PCAP_NOTE_H
#define PUMICE_PCAP_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTE_MAX 160 /* bytes of the text with its end */
#define NOTE_COMM 16 /* bytes of the program's name */

struct note {
    uint32_t qpn; /* the QP that sent the packet; for an incoming packet, the QP that receives it; 0: not known */
    uint32_t pid; /* the process that owns the QP; 0: not known */
    char comm[NOTE_COMM]; /* name of the process; without a final 0 if it fills the array; note_parse does not set it */
    bool has_wr;
    uint64_t wr_id; /* of the work request, if has_wr */
    bool retransmit; /* a retransmission */
    bool inside; /* the packet stayed within the device */
    bool before; /* captured before injected faults, which may have dropped or changed it */
};

/* Writes the comment. It is "" if nothing is known. */
void note_format(const struct note *n, char text[NOTE_MAX]);

/* Reads a comment of len bytes. It is not trusted: other programs write comments too. Returns false, with *out all 0,
 * if it is not of this form. */
bool note_parse(const char *text, size_t len, struct note *out);

#endif
