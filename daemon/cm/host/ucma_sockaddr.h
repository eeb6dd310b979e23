// SPDX-License-Identifier: BSD-2-Clause
/* Translates between socket addresses of programs and addresses of connection management (struct cm_addr). */
#ifndef PUMICE_DAEMON_CM_HOST_UCMA_SOCKADDR_H
#define PUMICE_DAEMON_CM_HOST_UCMA_SOCKADDR_H

#include <stddef.h>

#include "daemon/cm/host/ucma_abi.h"
#include "daemon/core/cm/cm_types.h"
#include "daemon/net/address.h"

union ucma_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct ucma_sockaddr_ib ib;
    struct __kernel_sockaddr_storage storage;
};

/* Bytes of an address of this family; 0: an unknown family. */
size_t ucma_sockaddr_size(const union ucma_sockaddr *a);

/* Reads an address. *scope: the interface of a link-local address; else 0. Returns -EAFNOSUPPORT for another family, and
 * -EINVAL for a link-local address without an interface. An address of AF_IB is read as the IP address that its GID
 * is; its port is in the service ID. */
int ucma_sockaddr_read(const union ucma_sockaddr *a, struct cm_addr *out, uint32_t *scope);

/* Writes an address. Returns its size; 0: there is no address, and *out is all zeros. */
size_t ucma_sockaddr_write(const struct cm_addr *a, uint32_t scope, union ucma_sockaddr *out);
/* Writes an address of AF_IB. */
void ucma_sockaddr_write_ib(const struct cm_addr *a, uint16_t port_space, struct ucma_sockaddr_ib *out);

/* True for 0.0.0.0 and ::. */
bool cm_addr_is_wildcard(const struct cm_addr *a);
/* Turns 127.0.0.1 and ::1 into the wildcard of their family. False, and unchanged: another address. */
bool cm_addr_make_wildcard(struct cm_addr *a);
/* True if there is no address. */
bool cm_addr_is_none(const struct cm_addr *a);
void cm_addr_to_net(const struct cm_addr *a, uint32_t scope, union addr *out);

#endif
