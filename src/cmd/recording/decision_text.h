// SPDX-License-Identifier: BSD-2-Clause
/* Decisions about single packets as text: a line of a recording (JSON), and a sentence. docs/replay.md explains the
 * members of a line. */
#ifndef PUMICE_SRC_CMD_RECORDING_DECISION_TEXT_H
#define PUMICE_SRC_CMD_RECORDING_DECISION_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "pumice/abi_decisions.h"

struct host_decision {
    unsigned host; /* that sends the packet */
    struct pm_decision decision;
};

#define DECISION_LINE_MAX 512 /* of a line, with its end */
#define DECISION_WHY_MAX 256

/* Writes the line, without a newline. */
void decision_to_line(const struct host_decision *d, char out[DECISION_LINE_MAX]);

/* Reads a line of len bytes. Returns false with a sentence in why if it is wrong. */
bool decision_from_line(const char *line, size_t len, struct host_decision *d, char why[DECISION_WHY_MAX]);

/* Writes a sentence, such as: host 0: packet 17 of QP 1 of program 1 is lost (UD SEND Only). */
void decision_to_sentence(const struct host_decision *d, char out[DECISION_LINE_MAX]);

/* The order of a recording: by host, then by packet. For qsort. */
int decision_compare(const void *a, const void *b);

#endif
