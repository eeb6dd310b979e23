// SPDX-License-Identifier: BSD-2-Clause
/* Writes and reads the comments that packets have in Pumice's captures. Users read them. The linter reads them too,
 * because a packet itself does not name the QP that sent it. */
#ifndef PUMICE_PCAP_NOTE_H
#define PUMICE_PCAP_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTE_MAX 448 /* bytes of the text with its end */
#define NOTE_COMM 16 /* bytes of the process's name, as in Linux (TASK_COMM_LEN) */

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
    /* The MAD in the packet, MAD_LEN bytes, which the comment describes; NULL: none. note_parse does not set it. */
    const uint8_t *mad;
};

/* Writes the comment. It is "" if nothing is known. */
void note_format(const struct note *n, char text[NOTE_MAX]);

/* Reads a comment of len bytes. The comment is not trusted, because other programs write comments too. If it does not
 * name a QP in this form, sets *out to all 0 and returns false. */
bool note_parse(const char *text, size_t len, struct note *out);

#endif
