// SPDX-License-Identifier: BSD-2-Clause
/* Is this thread within the checker? The checker replaces free(3), which it also calls itself. Within it, the thread can't be
 * cancelled, because it may have locks. errno is afterwards what it was before. */
#ifndef PUMICE_SRC_CHECK_BASE_INSIDE_H
#define PUMICE_SRC_CHECK_BASE_INSIDE_H

#include <stdbool.h>

void inside_enter(void);
void inside_leave(void);
bool inside_is(void);

/* Does this thread poll? A library may copy the data of a small message to its buffer then. */
void inside_poll_enter(void);
void inside_poll_leave(void);
bool inside_poll(void);

#endif
