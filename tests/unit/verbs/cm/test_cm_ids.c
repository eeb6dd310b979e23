// SPDX-License-Identifier: BSD-2-Clause
/* The IDs of a channel, as the client library counts them (src/verbs/cm/cm_ids.h). */
#include "src/verbs/cm/cm_ids.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define ESTABLISHED 9

static struct vb_cm_ids ids, other;

static void fini(void)
{
    vb_cm_ids_fini(&ids);
    vb_cm_ids_fini(&other);
}
TestSuite(cm_ids, .fini = fini);

static void count(uint32_t event, uint32_t id, uint64_t uid)
{
    vb_cm_ids_count(&ids, &(struct rdma_ucm_event_resp){.event = event, .id = id, .uid = uid});
}

/* The number of events of an ID that is destroyed now; -1: there is no such ID. */
static int destroyed(struct vb_cm_ids *of, uint32_t id)
{
    uint32_t n;
    return vb_cm_ids_destroy(of, id, &n) ? (int)n : -1;
}

Test(cm_ids, counts_events_of_each_id)
{
    vb_cm_ids_add(&ids, 7, 70);
    vb_cm_ids_add(&ids, 3, 30);
    count(ESTABLISHED, 7, 70);
    count(ESTABLISHED, 7, 70);
    count(ESTABLISHED, 3, 30);
    count(ESTABLISHED, 5, 50);
    cr_assert_eq(destroyed(&ids, 7), 2);
    cr_assert_eq(destroyed(&ids, 7), -1);
    cr_assert_eq(destroyed(&ids, 3), 1);
    cr_assert_eq(destroyed(&ids, 5), -1);
}

Test(cm_ids, a_request_counts_for_the_listener_and_adds_an_id)
{
    vb_cm_ids_add(&ids, 1, 10);
    vb_cm_ids_add(&ids, 2, 20);
    count(VB_CM_EVENT_CONNECT_REQUEST, 3, 20);
    count(VB_CM_EVENT_CONNECT_REQUEST, 4, 10);
    count(VB_CM_EVENT_CONNECT_REQUEST, 5, 20);
    cr_assert_eq(destroyed(&ids, 1), 1);
    cr_assert_eq(destroyed(&ids, 2), 2);
    cr_assert_eq(destroyed(&ids, 3), 0);
    cr_assert_eq(destroyed(&ids, 4), 0);
    cr_assert_eq(destroyed(&ids, 5), 0);
}

/* The numbers of memberships and of IDs are independent. */
Test(cm_ids, events_of_memberships_count_for_both)
{
    uint32_t n;
    vb_cm_ids_add(&ids, 1, 10);
    vb_cm_ids_add(&ids, 2, 20);
    vb_cm_ids_join(&ids, 2, 100, 1);
    vb_cm_ids_join(&ids, 1, 200, 2);
    count(VB_CM_EVENT_MULTICAST_JOIN, 2, 100);
    count(VB_CM_EVENT_MULTICAST_ERROR, 2, 100);
    count(VB_CM_EVENT_MULTICAST_JOIN, 1, 200);
    cr_assert(vb_cm_ids_leave(&ids, 2, &n));
    cr_assert_eq(n, 2);
    cr_assert_not(vb_cm_ids_leave(&ids, 2, &n));
    cr_assert_eq(destroyed(&ids, 1), 2);
    cr_assert_eq(destroyed(&ids, 2), 1);
    cr_assert_not(vb_cm_ids_leave(&ids, 1, &n), "it ended with its ID");
}

Test(cm_ids, each_named_id_is_removed_once)
{
    struct rdma_ucm_event_resp e;
    bool more;
    vb_cm_ids_add(&ids, 9, 90);
    vb_cm_ids_add(&ids, 4, 40);
    vb_cm_ids_add(&ids, 6, 0);
    vb_cm_ids_add(&ids, 5, 0);
    vb_cm_ids_add(&ids, UINT32_MAX, 0);
    vb_cm_ids_name(&ids, 5, 50);
    vb_cm_ids_name(&ids, 77, 1);
    static const uint32_t order[] = {4, 5, 9};
    for (int i = 0; i < 3; i++) {
        cr_assert(vb_cm_ids_removal(&ids, &e, &more));
        cr_assert_eq(more, i < 2);
        cr_assert_eq(e.id, order[i]);
        cr_assert_eq(e.uid, 10 * order[i]);
        cr_assert_eq(e.event, VB_CM_EVENT_DEVICE_REMOVAL);
        cr_assert_eq(e.status, 0);
    }
    cr_assert_not(vb_cm_ids_removal(&ids, &e, &more));
    cr_assert_not(more);
    cr_assert_eq(destroyed(&ids, 4), 1);
    cr_assert_eq(destroyed(&ids, 6), 0);
}

Test(cm_ids, the_highest_number_is_removed_too)
{
    struct rdma_ucm_event_resp e;
    bool more;
    vb_cm_ids_add(&ids, UINT32_MAX, 1);
    cr_assert(vb_cm_ids_removal(&ids, &e, &more));
    cr_assert_eq(e.id, UINT32_MAX);
    cr_assert_not(more);
    cr_assert_not(vb_cm_ids_removal(&ids, &e, &more));
}

/* The program ends IDs between the events. */
Test(cm_ids, ids_end_while_others_are_told)
{
    struct rdma_ucm_event_resp e;
    bool more;
    for (uint32_t id = 1; id <= 4; id++)
        vb_cm_ids_add(&ids, id, 10 * id);
    cr_assert(vb_cm_ids_removal(&ids, &e, &more) && more);
    cr_assert_eq(e.id, 1);
    cr_assert_eq(destroyed(&ids, 1), 1);
    cr_assert_eq(destroyed(&ids, 2), 0);
    cr_assert(vb_cm_ids_removal(&ids, &e, &more) && more);
    cr_assert_eq(e.id, 3);
    cr_assert_eq(destroyed(&ids, 4), 0);
    cr_assert_not(vb_cm_ids_removal(&ids, &e, &more));
    cr_assert_eq(destroyed(&ids, 3), 1);
}

Test(cm_ids, an_id_moves_with_its_memberships)
{
    uint32_t n;
    vb_cm_ids_add(&ids, 1, 10);
    vb_cm_ids_add(&ids, 2, 20);
    vb_cm_ids_join(&ids, 5, 50, 1);
    vb_cm_ids_join(&ids, 6, 60, 2);
    count(VB_CM_EVENT_MULTICAST_JOIN, 5, 50);
    vb_cm_ids_move(&ids, &other, 1);
    vb_cm_ids_move(&ids, &other, 33);
    vb_cm_ids_move(&ids, &ids, 2);
    cr_assert_not(vb_cm_ids_leave(&ids, 5, &n));
    cr_assert(vb_cm_ids_leave(&other, 5, &n));
    cr_assert_eq(n, 1);
    cr_assert_eq(destroyed(&other, 1), 1);
    cr_assert(vb_cm_ids_leave(&ids, 6, &n));
    cr_assert_eq(destroyed(&ids, 2), 0);
}

/* Many IDs come and go in any order; a plain array knows the same. */
Test(cm_ids, many)
{
    static int reported[512]; /* -1: no such ID */
    for (int i = 0; i < 512; i++)
        reported[i] = -1;
    srand(1);
    for (int i = 0; i < 100000; i++) {
        uint32_t id = (uint32_t)rand() % 512;
        switch (rand() % 4) {
        case 0:
            if (reported[id] < 0)
                vb_cm_ids_add(&ids, id, id), reported[id] = 0;
            break;
        case 1:
            cr_assert_eq(destroyed(&ids, id), reported[id]);
            reported[id] = -1;
            break;
        default:
            count(ESTABLISHED, id, id);
            reported[id] += reported[id] >= 0;
        }
    }
}
