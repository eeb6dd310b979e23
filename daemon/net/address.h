// SPDX-License-Identifier: BSD-2-Clause
/* Internet addresses and the GIDs that represent them: ::ffff:a.b.c.d for IPv4, the address itself for IPv6. */
#ifndef PUMICE_DAEMON_NET_ADDRESS_H
#define PUMICE_DAEMON_NET_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

#define ADDR_TEXT_MAX 72 /* an address with its scope, or a GID, with the final NUL */

/* Parses a numeric address ("127.0.0.1", "fd00::2", "fe80::1%eth0") into a socket address with port 0. Returns 0 or
 * -EINVAL. */
int addr_parse(const char *text, union addr *out);
socklen_t addr_len(const union addr *a);
void addr_set_port(union addr *a, uint16_t port); /* host order */
uint16_t addr_port(const union addr *a);
bool addr_is_loopback(const union addr *a);

/* These write text without the port, and return buf. */
const char *addr_text(const union addr *a, char buf[ADDR_TEXT_MAX]);
const char *gid_text(const uint8_t gid[16], char buf[ADDR_TEXT_MAX]);

void addr_to_gid(const union addr *a, uint8_t gid[16]);
bool addr_has_gid(const union addr *a, const uint8_t gid[16]);

/* Computes the socket address (port 0) that a device with the address `own` uses to reach `gid`. A link-local IPv6
 * address gets the device's scope. False: the device can't reach this address family, or the GID is the unspecified
 * address.
 *
 * Programs make up multicast groups of any form. An IPv4 device maps an InfiniBand group (ff00::/8) to a group of
 * 239.192.0.0/14. It computes this group from the MGID in the same way on every host. An IPv6 device maps an IPv4 group
 * to a group below ff18::, and gives groups of host scope the link scope. */
bool gid_to_addr(const uint8_t gid[16], const union addr *own, union addr *out);

#endif
