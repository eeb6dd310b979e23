// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/apart.h"

#define MUCH_MORE 8 /* times as many packets */

bool apart_look(struct apart *a, uint64_t inside, uint64_t outside, unsigned sessions, unsigned processors)
{
    bool mostly_inside = inside - a->inside > MUCH_MORE * (outside - a->outside);

    *a = (struct apart){inside, outside};
    return mostly_inside && sessions <= processors;
}
