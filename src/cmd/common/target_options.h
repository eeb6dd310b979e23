// SPDX-License-Identifier: BSD-2-Clause
/* Parses --host and --socket, which all subcommands about running daemons have: a child of their argp parsers. */
#ifndef PUMICE_SRC_CMD_COMMON_TARGET_OPTIONS_H
#define PUMICE_SRC_CMD_COMMON_TARGET_OPTIONS_H

#include <argp.h>

#include "src/cmd/common/targets.h"

/* The child's input. Before the parsing, the parent sets it to TARGET_OPTIONS_NONE. */
struct target_options {
    const char *socket; /* NULL: not given */
    int host; /* -1: not given */
};
#define TARGET_OPTIONS_NONE                                                                                            \
    {                                                                                                                  \
        NULL, -1                                                                                                       \
    }

/* For struct argp.children: one entry, then an empty one. On ARGP_KEY_INIT the parent's parser sets the child's input:
 * state->child_inputs[0] = &options.target. */
extern const struct argp_child target_options_child[];

/* Calls targets_find with the given options. */
int target_options_find(const struct target_options *w, struct targets *t);

#endif
