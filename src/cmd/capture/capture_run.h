// SPDX-License-Identifier: BSD-2-Clause
/* Captures packets of daemons to a file or a pipe, for pumice capture and pumice extcap. For pumice run --capture, it
 * captures in a process of its own. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_RUN_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pumice/abi.h"
#include "pumice/abi_capture.h"
#include "src/cmd/capture/capture_output.h"
#include "src/cmd/common/targets.h"

struct capture {
    /* Which packets to capture. If no direction is set, capture_run sets both directions for one daemon, but only "out"
     * for several: one daemon sends what another receives, so each packet is captured once. */
    struct pm_capture_req request;
    const char *device; /* NULL: all devices */
    uint64_t limit; /* number of packets after which the capture ends; 0: no limit */
    bool quiet; /* print only errors, and the summary if packets were dropped */
    int ready_fd; /* capture_run writes a byte there when the capture has begun; -1: none */
    struct capture_output out;
};

/* Sets the defaults, and the output path. */
void capture_init(struct capture *c, const char *path);
/* Captures at these daemons. Ends after `limit` packets, after SIGINT, SIGTERM or SIGHUP, when all daemons have ended,
 * or when the reader of a pipe has stopped. Returns the exit code. */
int capture_run(struct capture *c, const struct targets *t);

/* Starts a process that captures to path the packets that all hosts of a lab send, with `lost` also those
 * that faults lose. Returns its PID when the capture has
 * begun, or -1 after printing an error. */
pid_t capture_start(const char *lab, unsigned hosts, const char *path, bool lost);
/* Ends this process. The process first writes all packets so far. Returns false if the process failed; it has then
 * printed an error. */
bool capture_stop(pid_t pid);

#endif
