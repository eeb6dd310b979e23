// SPDX-License-Identifier: BSD-2-Clause
/* Moves a thread that polls away from the processor of its daemon. */
#ifndef PUMICE_SRC_VERBS_BASE_LEAVE_CPU_H
#define PUMICE_SRC_VERBS_BASE_LEAVE_CPU_H

#include <stdint.h>

/* The calling thread goes on on another one of the processors that it may use. These stay the same. Nothing happens if there
 * is no other one, or if the kernel forbids it. */
void vb_leave_cpu(uint32_t cpu);

#endif
