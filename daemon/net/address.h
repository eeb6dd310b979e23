// SPDX-License-Identifier: BSD-2-Clause
/* Internet addresses and the GIDs that stand for them: ::ffff:a.b.c.d for IPv4, the address itself for IPv6. */
#ifndef PUMICE_DAEMON_ADDR_H
#define PUMICE_DAEMON_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

#define ADDR_TEXT_MAX 72 /* an address with its scope, or a GID, with the final 0 */

/* A numeric address ("127.0.0.1", "fd00::2", "fe80::1%eth0") to a socket address with port 0. 0, or -EINVAL. */
int addr_parse(const char *text, union addr *out);
socklen_t addr_len(const union addr *a);
void addr_set_port(union addr *a, uint16_t port); /* host order */
uint16_t addr_port(const union addr *a);
bool addr_is_loopback(const union addr *a);

/* Text without the port. Returns buf. */
const char *addr_text(const union addr *a, char buf[ADDR_TEXT_MAX]);
const char *gid_text(const uint8_t gid[16], char buf[ADDR_TEXT_MAX]);

void addr_to_gid(const union addr *a, uint8_t gid[16]);

/* The socket address that a device whose own address is `own` uses to reach `gid`, with port 0 (link-local IPv6 gets
 * the device's scope). False if that family can't be reached from it, or if the GID is the unspecified address.
 *
 * Programs make up multicast groups of any form. An IPv4 device reaches those of InfiniBand (ff00::/8), too: at a group
 * of 239.192.0.0/14 that is made of the MGID, the same on every host. An IPv6 device reaches those of IPv4 below ff18::,
 * and those of host scope with link scope. */
bool gid_to_addr(const uint8_t gid[16], const union addr *own, union addr *out);

#endif
