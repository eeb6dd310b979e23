// SPDX-License-Identifier: BSD-2-Clause
/* Which addresses the hosts of a lab get. */
#ifndef PUMICE_SRC_CMD_LAB_ADDRESS_H
#define PUMICE_SRC_CMD_LAB_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

#define ADDRESS_BLOCKS 256 /* 127.0.0.x … 127.0.255.x */

/* Address of a host in a block: 127.0.block.(host + 1). */
void address_in_block(unsigned block, unsigned host, char out[INET6_ADDRSTRLEN]);

/* Whether a device could have this IPv4 or IPv6 address now: 0, or -EADDRINUSE (its RoCE port is taken),
 * -EADDRNOTAVAIL (not an address of this machine), -EINVAL (not an address at all), … */
int address_check(const char *text);

/* Cuts "A,B,C" into addresses, at most max. How many, or -1 if there are more or one is too long. */
int address_split(const char *text, char (*out)[INET6_ADDRSTRLEN], unsigned max);

/* Waits until no other lab of this network namespace is being started, because two that look for free addresses at
 * the same time would take them from each other. A descriptor to close when done; -1 if it took too long, which does
 * no harm. */
int address_lock(void);

#endif
