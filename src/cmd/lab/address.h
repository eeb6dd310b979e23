// SPDX-License-Identifier: BSD-2-Clause
/* The addresses of the devices of a lab. */
#ifndef PUMICE_SRC_CMD_LAB_ADDRESS_H
#define PUMICE_SRC_CMD_LAB_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

#define ADDRESS_BLOCKS 256 /* 127.device.0.x … 127.device.255.x */

#define DEVICES_MAX 16 /* devices of one host */

/* The addresses of one device, with + between them, as the option --device of pumiced takes them. */
#define ADDRESS_LIST_MAX 320

/* Writes an address of a device of a host in a block. index is its GID index, 0 or 1. The first addresses are
 * 127.device.block.(host + 1), the second ones 127.(128 + device).block.(host + 1). */
void address_in_block(unsigned block, unsigned host, unsigned device, unsigned index, char out[INET6_ADDRSTRLEN]);
/* The same for IPv6: fd00::(host + 1) and fd00::1:(host + 1) of the first device, fd00::2:(host + 1) and
 * fd00::3:(host + 1) of the second and so on, in hexadecimal. */
void address_v6(unsigned host, unsigned device, unsigned index, char out[INET6_ADDRSTRLEN]);

/* Checks that a device can use these IPv4 and IPv6 addresses now. Returns 0, -EADDRINUSE (another program has the RoCE
 * port), -EADDRNOTAVAIL (not an address of this machine), -EINVAL (not an IP address), … */
int address_check(const char *list);

/* Splits "A,B,C" into the lists of at most max devices. Returns their number, or -1 if there are more, or a list is too
 * long. */
int address_split(const char *text, char (*out)[ADDRESS_LIST_MAX], unsigned max);

/* Waits until no other lab is starting in this network namespace. Two labs that search for free addresses at the same
 * time may choose the same ones. Returns a descriptor, which the caller closes when its lab has started. Returns -1 if
 * the wait takes too long; the lab may then start without the lock. */
int address_lock(void);

#endif
