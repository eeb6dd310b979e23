// SPDX-License-Identifier: BSD-2-Clause
/* The smaller of two numbers. */
#ifndef PUMICE_DAEMON_CORE_BASE_MIN_H
#define PUMICE_DAEMON_CORE_BASE_MIN_H

#include <stdint.h>

static inline uint32_t min32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}
static inline uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
