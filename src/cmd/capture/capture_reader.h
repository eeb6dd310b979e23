// SPDX-License-Identifier: BSD-2-Clause
/* The reading end of captures (PM_OP_CAPTURE): the rings of one or more devices, of one or more daemons, as one stream
 * of packets in the order of time. All daemons are on this machine and so have one clock. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_READER_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"
#include "pumice/abi_capture.h"

struct capture_source {
    int sock; /* the capture lives as long as this connection; -1: the daemon has ended */
    char name[PM_NAME_MAX + 16]; /* of the device: "pumice0", in a lab "host1:pumice0" */
    struct pm_capture_page *page;
    const uint8_t *ring;
    uint64_t size; /* of the ring */
    uint64_t head, tail; /* what was there at the last capture_reader_look, and what was taken of it */
};
struct capture_reader {
    struct capture_source *source;
    unsigned n;
    uint64_t until; /* CLOCK_MONOTONIC, ns: everything before is there */
};

/* Starts captures at the devices of the daemon at path: all, or the one that is called device. request says what is
 * captured (device is ignored). host: its number in a lab, else -1. Returns how many there were, or -1 after saying
 * what is wrong. */
int capture_reader_add(struct capture_reader *t, const char *path, int host, const char *device,
                       const struct pm_capture_req *request);

/* Looks what has come. Whatever caused a packet that is there is there too. */
void capture_reader_look(struct capture_reader *t);
/* The oldest packet of those, NULL: none. It is valid until capture_reader_done(t, *source), which must follow. Its
 * bytes stand behind it. */
const struct pm_capture_record *capture_reader_next(struct capture_reader *t, unsigned *source);
void capture_reader_done(struct capture_reader *t, unsigned source);

/* Waits for a moment, or until the end of a daemon. False: all daemons have ended. */
bool capture_reader_wait(struct capture_reader *t, int ms);

/* Ends the captures: what capture_reader_look finds after that is the last. */
void capture_reader_stop(struct capture_reader *t);
void capture_reader_fini(struct capture_reader *t);

#endif
