// SPDX-License-Identifier: BSD-2-Clause
/* What Pumice's captures say of a packet in its comment: a line that a person reads, and that the linter reads as well,
 * because packets themselves don't say which QP has sent them. */
#ifndef PUMICE_PCAP_NOTE_H
#define PUMICE_PCAP_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTE_MAX 160 /* bytes of the text with its end */
#define NOTE_COMM 16 /* bytes of the program's name */

struct note {
    uint32_t qpn; /* the QP that has sent the packet, of an incoming one the QP that gets it; 0: not known */
    uint32_t pid; /* whose QP it is; 0: not known */
    char comm[NOTE_COMM]; /* its name; without a 0 if it is that long. Not read back */
    bool has_wr;
    uint64_t wr_id; /* of the work request, if has_wr */
    bool retransmit; /* it was sent before */
    bool inside; /* it never left the device */
    bool before; /* injected faults may have lost or changed it after that */
};

/* Writes the text, which is "" if nothing is known. */
void note_format(const struct note *n, char text[NOTE_MAX]);

/* Reads a comment of len bytes, which may be anything and anybody's. false: it isn't of this kind; *out is all 0. */
bool note_parse(const char *text, size_t len, struct note *out);

#endif
