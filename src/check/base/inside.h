// SPDX-License-Identifier: BSD-2-Clause
/* Is this thread within the checker? The checker replaces free(3), which it also calls itself. Within it, the thread can't be
 * cancelled, because it may have locks. errno is afterwards what it was before. */
#ifndef PUMICE_SRC_CHECK_BASE_INSIDE_H
#define PUMICE_SRC_CHECK_BASE_INSIDE_H

#include <stdbool.h>

void inside_enter(void);
void inside_leave(void);
bool inside_is(void);

/* Is this thread in the verbs library, to post or to poll? It may fill targets then: with the data of a small message. */
void inside_library_enter(void);
void inside_library_leave(void);
bool inside_library(void);

#endif
