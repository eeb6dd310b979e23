// SPDX-License-Identifier: BSD-2-Clause
/* IDs before they connect: states, options, ports. */
#include "tests/unit/core/cm/cm_fixture.h"

TestSuite(address, .init = net_setup, .fini = net_teardown);

static struct cm_addr any_of(bool v6, uint16_t port)
{
    struct cm_addr a = {.v6 = v6, .port = port};
    if (!v6)
        a.gid[10] = a.gid[11] = 0xff;
    return a;
}

static int bind_to(struct cm_id *id, struct cm_addr a)
{
    return cm_bind(id, &a, &A->route);
}

static uint16_t port_of(const struct cm_id *id)
{
    struct cm_id_info info;
    cm_id_query(id, &info);
    return info.src.port;
}

Test(address, creation)
{
    struct cm_id *id;
    cr_assert_eq(cm_id_create(A->cm, 0x107, QPT_RC, NULL, &id), -EPROTONOSUPPORT);
    cr_assert_eq(cm_id_create(A->cm, CM_PS_TCP, 8, NULL, &id), -EPROTONOSUPPORT);
    cr_assert_eq(cm_id_create(A->cm, CM_PS_IB, QPT_UC, OWNER(5), &id), 0);
    cr_assert_eq(cm_id_owner(id), OWNER(5));
}

Test(address, resolving_binds_and_keeps_the_port)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC);
    struct cm_addr dst = addr_of(1, PORT);
    struct cm_id_info info;
    cr_assert_eq(bind_to(id, any_of(false, 0)), 0);
    uint16_t port = port_of(id);
    cr_assert(port >= 32768 && port <= 60999);
    cr_assert_eq(cm_addr_resolved(id, &A->addr, &dst, &A->route), 0);
    cr_assert_eq(cm_addr_resolved(id, &A->addr, &dst, &A->route), -EINVAL);
    cm_id_query(id, &info);
    cr_assert_eq(info.src.port, port);
    cr_assert_arr_eq(info.src.gid, A->addr.gid, 16);
    cr_assert_eq(info.dst.port, PORT);
    cr_assert_eq(info.route.device, 0);
    settle();
    next_event(A, CM_EVENT_ADDR_RESOLVED);
    cr_assert_eq(bind_to(id, any_of(false, 0)), -EINVAL);
}

Test(address, an_id_can_try_again_after_an_error)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC);
    struct cm_addr dst = addr_of(1, PORT);
    cr_assert_eq(cm_addr_failed(id, -ENETUNREACH), 0);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_ADDR_ERROR).status, -ENETUNREACH);
    cr_assert_eq(cm_addr_resolved(id, &A->addr, &dst, &A->route), 0);
    cr_assert_eq(cm_addr_failed(id, -ENETUNREACH), -EINVAL);
}

Test(address, ip_over_infiniband_has_no_device)
{
    struct cm_id *id = new_id(A, CM_PS_IPOIB, QPT_UD);
    struct cm_addr dst = addr_of(1, PORT);
    cr_assert_eq(bind_to(id, addr_of(0, 1)), -EINVAL);
    cr_assert_eq(cm_addr_resolved(id, &A->addr, &dst, &A->route), 0);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_ADDR_ERROR).status, -EINVAL);
}

Test(address, options_have_their_time)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC), *ud = new_id(A, CM_PS_UDP, QPT_UD);
    cr_assert_eq(cm_set_option(id, CM_OPTION_TOS, 256), -EINVAL);
    cr_assert_eq(cm_set_option(id, CM_OPTION_REUSEADDR, 1), 0);
    cr_assert_eq(cm_set_option(id, CM_OPTION_AFONLY, 1), 0);
    cr_assert_eq(bind_to(id, any_of(false, 0)), 0);
    cr_assert_eq(cm_set_option(id, CM_OPTION_REUSEADDR, 0), -EINVAL);
    cr_assert_eq(cm_set_option(id, CM_OPTION_REUSEADDR, 1), 0);
    cr_assert_eq(cm_set_option(id, CM_OPTION_AFONLY, 0), 0);
    cr_assert_eq(cm_listen(id, 1), 0);
    cr_assert_eq(cm_set_option(id, CM_OPTION_AFONLY, 0), -EINVAL);
    cr_assert_eq(cm_set_option(id, CM_OPTION_REUSEADDR, 1), -EINVAL);
    cr_assert_eq(cm_set_option(ud, CM_OPTION_ACK_TIMEOUT, 3), -EINVAL);
}

Test(address, listening_binds_to_all_addresses)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC);
    cr_assert_eq(cm_listen(id, 0), 0);
    cr_assert_eq(state_of(id), CM_ID_LISTEN);
    cr_assert_neq(port_of(id), 0);
    cr_assert_eq(cm_listen(id, 0), -EINVAL);
    cr_assert_eq(cm_addr_failed(id, -ENODEV), -EINVAL);
}

Test(address, a_port_is_free_after_its_id)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC), *other = new_id(A, CM_PS_TCP, QPT_RC);
    cr_assert_eq(bind_to(id, addr_of(0, 80)), 0);
    cr_assert_eq(bind_to(other, addr_of(0, 80)), -EADDRINUSE);
    cr_assert_eq(state_of(other), CM_ID_IDLE);
    cm_id_destroy(id, net.now);
    cr_assert_eq(bind_to(other, addr_of(0, 80)), 0);
}

Test(address, owner_events_are_bounded)
{
    struct cm_id *id = new_id(A, CM_PS_UDP, QPT_UD);
    struct cm_event ev = {.type = CM_EVENT_MULTICAST_JOIN}, got;
    unsigned n = 0;
    for (int i = 0; i < 1000; i++)
        cm_post_event(id, &ev);
    while (cm_pop_event(A->cm, &got)) {
        cr_assert_eq(got.id, id);
        n++;
    }
    cr_assert_gt(n, 50);
    cr_assert_lt(n, 1000);
}

Test(address, events_wait_for_an_owner)
{
    struct cm_id *id;
    struct cm_event ev = {.type = CM_EVENT_MULTICAST_JOIN};
    cr_assert_eq(cm_id_create(A->cm, CM_PS_UDP, QPT_UD, NULL, &id), 0);
    cm_post_event(id, &ev);
    settle();
    no_event(A);
    cm_id_set_owner(id, OWNER(1));
    settle();
    next_event(A, CM_EVENT_MULTICAST_JOIN);
}
