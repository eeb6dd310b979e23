// SPDX-License-Identifier: BSD-2-Clause
/* Finds everything on this machine where a capture is possible, and gives it a name: the devices of the daemon or lab
 * in the environment, and the other labs of this user. */
#ifndef PUMICE_SRC_CMD_CAPTURE_DISCOVER_H
#define PUMICE_SRC_CMD_CAPTURE_DISCOVER_H

#include <limits.h>
#include <stdbool.h>

#include "pumice/abi.h"
#include "src/cmd/common/targets.h"

/* An interface in the terms of Wireshark: something to capture at. */
struct capture_interface {
    /* "pumice": all devices; "pumice0" or "host1:pumice0": one device; "lab-XXXXXX": all devices of that lab. */
    char name[PM_NAME_MAX + 16];
    char about[128]; /* a description for the user */
    struct targets targets; /* targets.lab, if not NULL, points to `dir` or into the environment */
    char dir[PATH_MAX]; /* of a lab that is not in the environment */
    char device[PM_NAME_MAX]; /* "": all devices */
};

#define DISCOVER_ALL "pumice"

/* Calls `each` for every interface, until a call returns true. The interface is valid during the call. Skips a daemon
 * that does not answer, without a message. Returns true if a call returned true. */
bool discover(bool (*each)(const struct capture_interface *, void *arg), void *arg);

#endif
