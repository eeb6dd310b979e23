// SPDX-License-Identifier: BSD-2-Clause
/* Moves a thread that polls away from the processor of its daemon, or to it. */
#ifndef PUMICE_SRC_VERBS_BASE_MOVE_CPU_H
#define PUMICE_SRC_VERBS_BASE_MOVE_CPU_H

#include <stdint.h>

/* The calling thread goes on on another one of the processors that it may use. These stay the same. Nothing happens if there
 * is no other one, or if the kernel forbids it. */
void vb_leave_cpu(uint32_t cpu);
/* The calling thread goes on on this processor, if it may use it. Those that it may use stay the same. */
void vb_join_cpu(uint32_t cpu);

#endif
