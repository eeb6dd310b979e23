// SPDX-License-Identifier: BSD-2-Clause
/* The output of `pumice capture`: writes packets as pcapng to one file, to a rotating set of files, or to a pipe. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_OUTPUT_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcap/capfile.h"
#include "src/cmd/capture/capture_reader.h"

struct capture_output {
    const char *path; /* "-": standard output */
    uint64_t size; /* bytes after which the next file begins; 0: one file */
    unsigned count; /* number of files after which the first is overwritten; 0: no limit */
    bool lost; /* packets that faults lost come too, each source's at a second interface */
    struct capfile file;
    bool open;
    unsigned number; /* of the current file */
    uint64_t written; /* bytes in the current file, estimated */
    uint64_t packets; /* in all files */
    uint64_t offset; /* CLOCK_REALTIME minus CLOCK_MONOTONIC, ns */
    const struct capture_reader *reader; /* its sources are the interfaces of the file */
    uint8_t *packet; /* buffer for one packet */
};

/* All functions that return an int return 0 or -errno. They print errors, except EPIPE, which means that the reader of
 * the pipe has stopped. */

/* Opens the first file and writes everything before the packets. The caller has set path, size, count and lost. After an
 * error there is nothing to close. */
int capture_output_open(struct capture_output *o, const struct capture_reader *reader);

/* Writes a packet, in a new file if the current one is full. */
int capture_output_add(struct capture_output *o, unsigned source, const struct pm_capture_record *r);

/* Writes buffered data. */
int capture_output_flush(struct capture_output *o);

/* True if the output is a pipe without readers. */
bool capture_output_abandoned(const struct capture_output *o);

/* Appends the statistics of the interfaces and closes the file. */
int capture_output_close(struct capture_output *o);

#endif
