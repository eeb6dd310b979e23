// SPDX-License-Identifier: BSD-2-Clause
/* The options of pumice capture and pumice extcap that choose packets. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_FILTER_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_FILTER_H

#include <argp.h>

#include "pumice/abi_capture.h"

/* Sets the defaults: all queue pairs, peers and opcodes. No direction is set. */
void capture_filter_init(struct pm_capture_req *rq);

/* The argp parser of these options, a child of the subcommand's parser. Its input is a struct pm_capture_req. */
extern const struct argp capture_filter_argp;

/* Reads text as a number from least to most (decimal, octal with 0, hexadecimal with 0x). If the text is anything else,
 * reports a usage error of --option and exits. */
long capture_filter_number(struct argp_state *state, const char *option, const char *text, long least, long most);

#endif
