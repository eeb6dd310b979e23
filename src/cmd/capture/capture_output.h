// SPDX-License-Identifier: BSD-2-Clause
/* The writing end of `pumice capture`: packets from rings to pcapng, in one file, several that take turns, or a pipe.
 * */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_OUTPUT_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "pcap/capfile.h"
#include "src/cmd/capture/capture_reader.h"

struct capture_output {
    const char *path; /* "-": standard output */
    uint64_t size; /* bytes after which the next file begins; 0: never */
    unsigned count; /* files after which the first is written over; 0: never */
    struct capfile file;
    bool open;
    unsigned number; /* of the present file */
    uint64_t written; /* bytes in it, about */
    uint64_t packets; /* in all files */
    uint64_t offset; /* of CLOCK_REALTIME to CLOCK_MONOTONIC, ns */
    const struct capture_reader *taps; /* whose sources are the interfaces */
    uint8_t *packet; /* room for one */
};

/* Opens the first file and writes what precedes the packets. path, size and count must be set. 0 or -errno, said; then
 * there is nothing to close. */
int capture_output_open(struct capture_output *o, const struct capture_reader *taps);
/* 0, or -errno after saying so (but for EPIPE, where the reader has just had enough). */
int capture_output_add(struct capture_output *o, unsigned source, const struct pm_capture_record *r);
int capture_output_flush(struct capture_output *o);
/* Whether it is a pipe that nobody reads any more. */
bool capture_output_abandoned(const struct capture_output *o);
/* Appends the statistics and closes. 0 or -errno, likewise. */
int capture_output_close(struct capture_output *o);

#endif
