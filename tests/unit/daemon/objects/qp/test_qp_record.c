// SPDX-License-Identifier: BSD-2-Clause
/* How much memory of the daemon an idle QP takes: its record, with the engine's QP, and its entries in tables. */
#include <criterion/criterion.h>

#include "daemon/core/control/qp_life.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/doorbell.h"

#define WANTED 1024u /* docs/scaling.md */
/* The handle (a node of a hash table), its entries in the tables of the engine and of the doorbells, its share of a slab,
 * and what malloc adds. tests/bench/idle_qps.py measures 173. */
#define ENTRIES 176u

Test(qp_record, an_idle_qp_is_small)
{
    size_t record = (sizeof(struct client_qp) + 63) / 64 * 64, all = record + qp_state_size() + ENTRIES;
    cr_assert_leq(
        all, WANTED,
        "an idle QP takes about %zu bytes, expected at most %u: %zu in struct client_qp, %zu in the engine. Put "
        "what only a QP with traffic needs into struct qp_traffic, or allocate it when it is first used",
        all, WANTED, record, qp_state_size());
}
