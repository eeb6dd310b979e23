// SPDX-License-Identifier: BSD-2-Clause
/* Late completions, one kind of an unkind NIC (docs/unkind.md): holds completions that the engine has made back for a
 * while, and gives them out in bunches. Completions of one queue keep their order. Those of different queues come in any.
 *
 * A pure module. The owner must take all completions before an object that they name is freed. */
#ifndef PUMICE_DAEMON_LOOP_COMPLETION_DELAY_H
#define PUMICE_DAEMON_LOOP_COMPLETION_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/unkind.h"
#include "daemon/core/base/types.h"

struct completion_delay; /* of one device */

/* NULL: out of memory. u must stay. */
struct completion_delay *completion_delay_new(struct unkind *u);
void completion_delay_free(struct completion_delay *q);

/* Adds a copy. False: there is no room. */
bool completion_delay_push(struct completion_delay *q, const struct completion *c, uint64_t now);
/* Takes the next completion that is due; with NEVER as `now`, the next of all. It is valid until the next call. NULL: none is
 * due. */
const struct completion *completion_delay_pop(struct completion_delay *q, uint64_t now);
/* When the next one is due; NEVER: there is none. */
uint64_t completion_delay_deadline(const struct completion_delay *q);

#endif
