// SPDX-License-Identifier: BSD-2-Clause
/* Pages of targets that the program may not touch while the device may fill them (RULE_TOUCH). They have no rights meanwhile,
 * and an access of the program is a signal. The device writes all the same: a NIC by its own mapping, Pumice's daemon through
 * /proc/PID/mem.
 *
 * Only private memory with rights to read and write can be guarded, and only whole pages; watch.h sees the rest. Under the lock of records.h, if not
 * said otherwise. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_GUARD_H
#define PUMICE_SRC_CHECK_OBJECTS_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* A process may have few different mappings (vm.max_map_count), so only so many targets are guarded at a time. */
#define GUARDS_MAX 1024u

enum guard_access { GUARD_READ, GUARD_WRITE, GUARD_UNKNOWN };

struct guard {
    uint64_t from, to; /* pages; from == to: none */
};

/* Is all of this memory private, with rights to read and write? Takes long. Without the lock. */
bool guard_can(uint64_t from, uint64_t to);

void guard_set(struct guard *g, uint64_t from, uint64_t to);
/* The program may touch the pages again. */
void guard_lift(struct guard *g);

/* Calls fn for each access of the program to an address without rights, with its instruction. fn returns whether the address
 * was guarded, and lifts that guard. Other accesses go to the handler of the program. Without the lock. */
void guard_start(bool (*fn)(uint64_t address, enum guard_access access, const void *instruction));

#endif
