// SPDX-License-Identifier: BSD-2-Clause
/* Spreads the processes of a host over its devices: chooses the one device that a process sees (PM_ENV_SPREAD). */
#ifndef PUMICE_SRC_VERBS_DEVICE_SPREAD_H
#define PUMICE_SRC_VERBS_DEVICE_SPREAD_H

#include "pumice/abi.h"

/* Reduces the list to the device that this process sees, if processes are spread. *first becomes the index of the first
 * device of the reduced list in the daemon's. A rank of an MPI job takes the device by its number on its host. Another
 * process asks the daemon for its turn, once. path: the control socket of the daemon. caller: a return address in the
 * library that wants the list. librdmacm sees all devices, because it looks for the device that has an address. */
void vb_spread_choose(struct pm_list_rep *rep, uint32_t *first, const char *path, const void *caller);

#endif
