// SPDX-License-Identifier: BSD-2-Clause
/* The ring of completions. */
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "tests/unit/core/core_fixture.h"

static struct fixture fix;
static struct qp *qp;

static void setup(void)
{
    fix_init(&fix);
    qp = fix_qp(&fix);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(event_queue, .init = setup, .fini = teardown);

static void add(uint64_t wr_id)
{
    completion_add(qp, false, WC_SUCCESS, 0)->wr_id = wr_id;
}

/* They all use the same memory. */
Test(event_queue, completions_one_by_one_use_one_slot)
{
    const struct completion *first = NULL;

    for (uint64_t i = 0; i < 100; i++) {
        add(i);
        const struct completion *c = engine_peek_completion(fix.e);
        cr_assert_not_null(c);
        cr_assert_eq(c->wr_id, i);
        first = first ? first : c;
        cr_assert_eq(c, first);
        engine_drop_completion(fix.e);
        cr_assert_null(engine_peek_completion(fix.e));
    }
}

/* The owner may take completions while others come, for more rounds than the ring has slots. */
Test(event_queue, completions_keep_their_order_around_the_ring)
{
    uint64_t taken = 0, added = 0, slots = fix.cfg.completion_slots;

    while (taken < 5 * slots) {
        for (unsigned i = 0; i < 7 && completion_room(fix.e); i++)
            add(added++);
        for (unsigned i = 0; i < 6; i++) {
            cr_assert_eq(engine_peek_completion(fix.e)->wr_id, taken++);
            engine_drop_completion(fix.e);
        }
    }
    cr_expect_eq(completion_room(fix.e), slots - (added - taken));
}
