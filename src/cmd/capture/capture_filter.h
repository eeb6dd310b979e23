// SPDX-License-Identifier: BSD-2-Clause
/* The options that say what is captured, of pumice capture and of the extcap program. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_FILTER_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_FILTER_H

#include <argp.h>

#include "pumice/abi_capture.h"

/* Everything of all queue pairs, peers and opcodes; neither direction is set yet. */
void capture_filter_init(struct pm_capture_req *rq);

/* A parser to be another one's child; its input is a struct pm_capture_req. */
extern const struct argp capture_filter_argp;

/* The number that text is, which must be from least to most; else it is a usage error of --option, and this does not
 * return. */
long capture_filter_number(struct argp_state *state, const char *option, const char *text, long least, long most);

#endif
