// SPDX-License-Identifier: BSD-2-Clause
/* Emulated networks (daemon/netem) in virtual time: engines send over the links of a plan, and what they reach is compared with
 * a computed answer. */
#ifndef PUMICE_TESTS_SIM_EMULATED_EMULATED_H
#define PUMICE_TESTS_SIM_EMULATED_EMULATED_H

#include <stdbool.h>
#include <stdint.h>

/* Runs all networks, or the one with this name. Returns how many have failed, and adds to *passed. */
uint64_t emulated_networks(const char *only, bool verbose, uint64_t *passed);

#endif
