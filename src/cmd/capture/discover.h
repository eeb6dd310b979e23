// SPDX-License-Identifier: BSD-2-Clause
/* What there is to capture at on this machine, under names that can be typed: the devices of the daemon or lab that the
 * environment leads to, and the labs of this user that it does not lead to. */
#ifndef PUMICE_SRC_CMD_CAPTURE_DISCOVER_H
#define PUMICE_SRC_CMD_CAPTURE_DISCOVER_H

#include <limits.h>
#include <stdbool.h>

#include "pumice/abi.h"
#include "src/cmd/common/targets.h"

struct place {
    char name[PM_NAME_MAX + 16]; /* "pumice": all devices; "pumice0", "host1:pumice0"; "lab-XXXXXX": all of that lab */
    char about[128]; /* for people */
    struct targets targets; /* as for every command; lab, if not NULL, is `dir` or the environment's */
    char dir[PATH_MAX]; /* of a lab that was found */
    char device[PM_NAME_MAX]; /* "": all */
};

#define DISCOVER_ALL "pumice"

/* Calls each for every place that answers, until it returns true; the place is valid during the call. A daemon that
 * does not answer is passed over in silence. Returns whether one call returned true. */
bool discover(bool (*each)(const struct place *, void *arg), void *arg);

#endif
