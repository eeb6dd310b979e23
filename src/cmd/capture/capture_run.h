// SPDX-License-Identifier: BSD-2-Clause
/* pumice capture, and pumice run --capture: a process that captures until it is told to end. */
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
    struct pm_capture_req request; /* both directions unset: in and out for one daemon, out for several (each sends what
                                    * another receives, so each packet is there once) */
    const char *device; /* NULL: all */
    uint64_t limit; /* ends after so many packets; 0: no limit */
    bool quiet; /* says nothing but what went wrong */
    int ready_fd; /* a byte is written there when it captures; -1: none */
    struct capture_output out;
};

/* Everything at its default, with the output to path. */
void capture_init(struct capture *c, const char *path);
/* Captures at those daemons until SIGINT or SIGTERM, or their end. The exit code. */
int capture_run(struct capture *c, const struct targets *t);

/* For a lab: a process that captures what all hosts send, to path. Returns when it captures; its number, or -1 after
 * saying what is wrong. */
pid_t capture_start(const char *lab, unsigned hosts, const char *path);
/* Ends it, after what it has seen so far was written. False: something went wrong, which was said. */
bool capture_stop(pid_t pid);

#endif
