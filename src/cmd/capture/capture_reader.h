// SPDX-License-Identifier: BSD-2-Clause
/* Reads captures from daemons (PM_OP_CAPTURE): merges the rings of all devices of all daemons into one stream of
 * packets, ordered by time. All daemons run on this machine, so they have the same clock. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_READER_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"
#include "pumice/abi_capture.h"

struct capture_source {
    int sock; /* the capture lasts as long as this connection; -1: the daemon has ended */
    char name[PM_NAME_MAX + 16]; /* of the device: "pumice0"; in a lab "host1:pumice0" */
    struct pm_capture_page *page;
    const uint8_t *ring;
    uint64_t size; /* of the ring */
    uint64_t head; /* end of the records at the last capture_reader_poll */
    uint64_t tail; /* end of the records that were read */
};
struct capture_reader {
    struct capture_source *source;
    unsigned n;
    uint64_t until; /* CLOCK_MONOTONIC, ns: all packets before this time are in the rings */
};

/* Starts captures at the devices of the daemon at path: at all devices, or only at the one named `device`. request says
 * which packets to capture; its member device is ignored. host is the number in a lab, else -1. Returns the number of
 * captures, or -1 after printing an error. */
int capture_reader_add(struct capture_reader *reader, const char *path, int host, const char *device,
                       const struct pm_capture_req *request);

/* Finds the packets that are in the rings now. If another packet caused one of them, this finds the other packet
 * too. */
void capture_reader_poll(struct capture_reader *reader);

/* The oldest packet that the last poll found and the caller has not read; NULL: none. The packet's bytes follow the
 * record. Both are valid until capture_reader_done(reader, *source), which the caller must call next. */
const struct pm_capture_record *capture_reader_next(struct capture_reader *reader, unsigned *source);
void capture_reader_done(struct capture_reader *reader, unsigned source);

/* Waits at most ms milliseconds, or until a daemon ends. Returns false if all daemons have ended. */
bool capture_reader_wait(struct capture_reader *reader, int ms);

/* Ends the captures. The next capture_reader_poll finds the last packets. */
void capture_reader_stop(struct capture_reader *reader);

/* Ends the captures and releases everything. */
void capture_reader_fini(struct capture_reader *reader);

#endif
