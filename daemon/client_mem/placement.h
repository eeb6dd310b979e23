// SPDX-License-Identifier: BSD-2-Clause
/* Out-of-order placement, one kind of an unkind NIC (docs/unkind.md): the waiting writes of a client are cut into
 * pieces, and the pieces come to memory in any order, with a pause between. Afterwards all are there. So a program that
 * waits for a completion notices nothing. A program that polls memory for the last byte of a message sees it before
 * the other bytes.
 *
 * Pieces begin and end at multiples of 8 bytes, because aligned words of 8 bytes come whole from any NIC. A write that
 * overlaps an earlier one comes after it: writes of one QP to the same place have an order. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_PLACEMENT_H
#define PUMICE_DAEMON_CLIENT_MEM_PLACEMENT_H

#include "daemon/base/unkind.h"
#include "daemon/client_mem/client_mem.h"

struct placement; /* of one device */

/* NULL: out of memory. u must stay. */
struct placement *placement_new(struct unkind *u);
void placement_free(struct placement *p);

/* As client_mem_flush, in any order. It takes up to some hundred microseconds. */
void placement_flush(struct placement *p, struct client_mem *s, client_mem_failed *failed, void *ctx);

#endif
