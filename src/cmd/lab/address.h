// SPDX-License-Identifier: BSD-2-Clause
/* The addresses of the hosts of a lab. */
#ifndef PUMICE_SRC_CMD_LAB_ADDRESS_H
#define PUMICE_SRC_CMD_LAB_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

#define ADDRESS_BLOCKS 256 /* 127.0.0.x … 127.0.255.x */

/* Writes the address of a host in a block: 127.0.block.(host + 1). */
void address_in_block(unsigned block, unsigned host, char out[INET6_ADDRSTRLEN]);

/* Checks that a device can use this IPv4 or IPv6 address now. Returns 0, -EADDRINUSE (another program has its RoCE
 * port), -EADDRNOTAVAIL (not an address of this machine), -EINVAL (not an IP address), … */
int address_check(const char *text);

/* Splits "A,B,C" into at most max addresses. Returns their number, or -1 if there are more, or an address is too
 * long. */
int address_split(const char *text, char (*out)[INET6_ADDRSTRLEN], unsigned max);

/* Waits until no other lab is starting in this network namespace. Two labs that search for free addresses at the same
 * time may choose the same ones. Returns a descriptor, which the caller closes when its lab has started. Returns -1 if
 * the wait takes too long; the lab may then start without the lock. */
int address_lock(void);

#endif
