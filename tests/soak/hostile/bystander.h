// SPDX-License-Identifier: BSD-2-Clause
/* The bystander: a user who transfers data and asks the daemon for its status, and checks both. */
#ifndef PUMICE_TESTS_SOAK_HOSTILE_BYSTANDER_H
#define PUMICE_TESTS_SOAK_HOSTILE_BYSTANDER_H

/* Connects device `from` with device `to`. Then reads lines from standard input, each with a number of seconds. During
 * this time it WRITEs 64 KiB at a time, and checks completions and data. It prints for each line:
 *     GB/S WRITES STATUS-REQUESTS STATUS-99%-MS STATUS-MAX-MS
 * Returns 0, or 1 after an error, which it prints. */
int bystander(const char *from, const char *to);

#endif
