// SPDX-License-Identifier: BSD-2-Clause
/* A list of address prefixes, such as 10.0.0.0/8,fd00::/8: the addresses that a daemon accepts packets from (option
 * peers). */
#ifndef PUMICE_DAEMON_NET_PEER_LIST_H
#define PUMICE_DAEMON_NET_PEER_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/address.h"

#define PEER_LIST_MAX 64u
#define PEER_PREFIX_TEXT_MAX (ADDR_TEXT_MAX + 4) /* with the final NUL */

struct peer_prefix {
    uint8_t gid[16]; /* zero after the prefix */
    uint8_t bits; /* of gid: 96 more than those of an IPv4 prefix */
};
struct peer_list {
    uint32_t n; /* 0: all addresses are accepted */
    struct peer_prefix prefix[PEER_LIST_MAX];
};

/* Parses "any", or up to PEER_LIST_MAX prefixes, ADDRESS or ADDRESS/BITS, with commas between them. Bits of the address
 * beyond the prefix are ignored. Returns 0, or -EINVAL, which leaves *out undefined. */
int peer_list_parse(const char *text, struct peer_list *out);
/* Does the list accept packets from this address? */
bool peer_list_admits(const struct peer_list *l, const uint8_t gid[16]);
/* Writes ADDRESS/BITS, and returns buf. */
const char *peer_prefix_text(const struct peer_prefix *p, char buf[PEER_PREFIX_TEXT_MAX]);

#endif
