// SPDX-License-Identifier: BSD-2-Clause
/* The options --host and --socket, which all commands about running daemons have: a child of their argp parsers. */
#ifndef PUMICE_SRC_CMD_COMMON_TARGET_OPTIONS_H
#define PUMICE_SRC_CMD_COMMON_TARGET_OPTIONS_H

#include <argp.h>

#include "src/cmd/common/targets.h"

struct target_options { /* the child's input; see TARGET_OPTIONS_NONE */
    const char *socket; /* NULL: not given */
    int host; /* -1: not given */
};
#define TARGET_OPTIONS_NONE                                                                                            \
    {                                                                                                                  \
        NULL, -1                                                                                                       \
    }

/* For struct argp.children: one entry, then an empty one. The parent's parser hands over the place of the answers when
 * it gets ARGP_KEY_INIT: state->child_inputs[0] = &options.target. */
extern const struct argp_child target_options_child[];

/* targets_find for what was given. */
int target_options_find(const struct target_options *w, struct targets *t);

#endif
