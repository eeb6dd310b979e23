// SPDX-License-Identifier: BSD-2-Clause
/* The ports of a host: which ID has which port of which address, for each port space. The rules are those of Linux's
 * rdma_cm: a wildcard conflicts with each address of its families, REUSEADDR allows a port to be shared until one of its
 * users listens. */
#ifndef PUMICE_DAEMON_CORE_CM_PORT_SPACE_H
#define PUMICE_DAEMON_CORE_CM_PORT_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/base/permute.h"
#include "daemon/core/cm/cm_types.h"

#define PORT_SPACES 4u
#define PORTS 0x10000u

/* The use of a port by an ID. */
struct binding {
    struct binding *next; /* another user of the port */
    struct binding **link; /* what points to this one; NULL: not bound */
    uint16_t port_space; /* enum cm_port_space */
    struct cm_addr addr;
    bool afonly; /* a wildcard is of its own family only */
    bool reuseaddr;
    bool listening;
};
struct port_table {
    struct binding **first; /* by port space and port */
    uint16_t first_port, last_port; /* ephemeral ones */
    struct permute_secret secret;
    uint32_t tried; /* ephemeral ports so far */
};

bool port_space_exists(uint16_t port_space);
/* :: or 0.0.0.0 */
bool cm_addr_is_any(const struct cm_addr *a);

/* Bytes of zeroed memory for port_table_init. */
size_t port_table_size(void);
void port_table_init(struct port_table *t, void *mem, uint16_t first_port, uint16_t last_port,
                     const struct permute_secret *secret);
/* Takes b->addr.port; 0: an ephemeral port, which is then in b->addr.port. -EADDRINUSE: the port of this address is in
 * use. -EADDRNOTAVAIL: a wildcard of it is in use, or an address while this is a wildcard; or no ephemeral port is
 * free. */
int port_space_bind(struct port_table *t, struct binding *b);
/* May this bound one listen? Listening is exclusive, REUSEADDR or not. 0, -EADDRINUSE or -EADDRNOTAVAIL. */
int port_space_may_listen(const struct port_table *t, const struct binding *b);
/* Also if it is not bound. */
void port_space_release(struct binding *b);
/* Which listener gets a request for this address. NULL: none. */
struct binding *port_space_find(const struct port_table *t, uint16_t port_space, uint16_t port, bool v6,
                                const uint8_t gid[16]);

#endif
