// SPDX-License-Identifier: BSD-2-Clause
/* The options --host and --socket, which all commands about running daemons have: a child of their argp parsers. */
#ifndef PUMICE_CMD_WHICH_H
#define PUMICE_CMD_WHICH_H

#include <argp.h>

#include "src/cmd/common/control.h"

struct which { /* the child's input; see WHICH_NONE */
    const char *socket; /* NULL: not given */
    int host; /* -1: not given */
};
#define WHICH_NONE                                                                                                     \
    {                                                                                                                  \
        NULL, -1                                                                                                       \
    }

/* For struct argp.children: one entry, then an empty one. The parent's parser hands over the place of the answers when
 * it gets ARGP_KEY_INIT: state->child_inputs[0] = &options.which. */
extern const struct argp_child which_child[];

/* targets_find for what was given. */
int which_find(const struct which *w, struct targets *t);

#endif
