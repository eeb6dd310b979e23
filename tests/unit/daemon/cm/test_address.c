// SPDX-License-Identifier: BSD-2-Clause
/* Addresses: binding, resolving, queries, options and multicast groups. */
#include <criterion/criterion.h>
#include <endian.h>
#include <stddef.h>

#include "daemon/cm/host/cm_resolve.h"
#include "tests/unit/daemon/cm/cm_fixture.h"

#define A (&cm_node[0])
#define B (&cm_node[1])

static void start(void)
{
    cr_assert(cm_start());
}

TestSuite(cm_address, .init = start, .fini = cm_end);

static int query(struct cm_node *n, uint32_t id, uint32_t option, void *out, size_t size)
{
    struct rdma_ucm_query in = {.id = id, .option = option};

    memset(out, 0xee, size);
    return cm_command(n, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), out, size);
}

Test(cm_address, binding)
{
    struct sockaddr_in6 link_local = {.sin6_family = AF_INET6, .sin6_addr = {{{0xfe, 0x80, [15] = 1}}}};
    struct sockaddr other = {.sa_family = AF_UNIX};
    uint32_t id = cm_create(A, RDMA_PS_TCP, 1), twin = cm_create(A, RDMA_PS_TCP, 2);
    struct rdma_ucm_query_addr_resp q;

    cr_expect_eq(cm_bind_ip(A, id, "127.0.0.2", 0), -ENODEV, "an address of this machine, but of no device");
    cr_expect_eq(cm_bind_ip(A, id, "192.0.2.1", 0), -EADDRNOTAVAIL);
    cr_expect_eq(cm_bind_to(A, id, &link_local, sizeof(link_local)), -EINVAL, "without an interface");
    cr_expect_eq(cm_bind_to(A, id, &other, sizeof(other)), -EINVAL);
    cr_expect_eq(cm_bind_ip(B, cm_create(B, RDMA_PS_TCP, 3), "127.0.0.1", 0), 0, "of no device there: a wildcard");
    cr_expect_eq(cm_bind_ip(A, id, "127.0.0.1", 7471), 0);
    cr_expect_eq(cm_bind_ip(A, id, "127.0.0.1", 7471), -EINVAL, "it is bound");
    cr_expect_eq(cm_bind_ip(A, twin, "127.0.0.1", 7471), -EADDRINUSE);
    cr_expect_eq(cm_bind_ip(A, twin, "0.0.0.0", 0), 0);
    cr_assert_eq(query(A, id, RDMA_USER_CM_QUERY_ADDR, &q, sizeof(q)), 0);
    cr_expect_eq(be64toh(q.node_guid), 0x1000);
    cr_expect_eq(q.port_num, 1);
    cr_expect_eq(q.src_size, sizeof(struct sockaddr_in));
    cr_expect_eq(q.dst_size, 0);
    cr_expect_eq(ntohs(((struct sockaddr_in *)&q.src_addr)->sin_port), 7471);
    cr_expect_eq(q.ibdev_index, 0xeeeeeeee, "the kernel's index of the device is left open");
    cr_assert_eq(query(A, twin, RDMA_USER_CM_QUERY_ADDR, &q, sizeof(q)), 0);
    cr_expect_eq(q.node_guid, 0, "a wildcard has no device");
    cr_expect_neq(((struct sockaddr_in *)&q.src_addr)->sin_port, 0);
    cr_expect_eq(query(A, id, RDMA_USER_CM_QUERY_ADDR, &q, 8), -ENOSPC);
    cr_expect_eq(query(A, id, 77, &q, sizeof(q)), -ENOSYS);
}

Test(cm_address, resolving_and_queries)
{
    uint32_t id = cm_create(B, RDMA_PS_TCP, 1);
    struct {
        struct rdma_ucm_query_path_resp head;
        struct ucma_path_data path[6];
    } path;
    struct rdma_ucm_query_route_resp r;
    struct rdma_ucm_query_addr_resp q;
    struct rdma_ucm_event_resp ev;
    struct rdma_ucm_query in = {.id = id};

    cr_assert_eq(cm_resolve(B, id, NULL, "127.0.0.1", 7471), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_ADDR_RESOLVED);
    cr_assert_eq(query(B, id, RDMA_USER_CM_QUERY_ADDR, &q, sizeof(q)), 0);
    cr_expect_eq(ntohl(((struct sockaddr_in *)&q.src_addr)->sin_addr.s_addr), 0x7f000002, "its own device");
    cr_expect_eq(ntohl(((struct sockaddr_in *)&q.dst_addr)->sin_addr.s_addr), 0x7f000001);
    cr_expect_eq(ntohs(((struct sockaddr_in *)&q.dst_addr)->sin_port), 7471);
    cr_assert_eq(query(B, id, RDMA_USER_CM_QUERY_PATH, &path, sizeof(path)), 0);
    cr_expect_eq(path.head.num_paths, 0, "no route yet");
    cr_assert_eq(cm_command(B, RDMA_USER_CM_CMD_QUERY_ROUTE, &in, sizeof(in), &r, sizeof(r)), 0);
    cr_expect_eq(r.num_paths, 0);
    cr_expect_arr_eq(r.ib_route[0].dgid, A->box.device.gids[0], 16);
    cr_assert_eq(cm_route(B, id), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_assert_eq(query(B, id, RDMA_USER_CM_QUERY_PATH, &path, sizeof(path)), 0);
    cr_expect_eq(path.head.num_paths, 1);
    cr_expect_arr_eq(path.path[0].path.sgid, B->box.device.gids[0], 16);
    cr_expect_eq(path.path[0].path.mtu & 0x3f, 5);
    cr_expect_eq(be32toh(path.path[0].path.flow_hop), 64);
    cr_expect_eq(be16toh(path.path[0].path.pkey), 0xffff);
    cr_assert_eq(cm_command(B, RDMA_USER_CM_CMD_QUERY_ROUTE, &in, sizeof(in), &r, sizeof(r)), 0);
    cr_expect_eq(r.num_paths, 1);
    cr_expect_eq(r.ib_route[0].mtu, 5);
    cr_expect_eq(r.ib_route[0].hop_limit, 64);
    cr_assert_eq(query(B, id, RDMA_USER_CM_QUERY_GID, &q, sizeof(q)), 0);
    const struct ucma_sockaddr_ib *ib = (const struct ucma_sockaddr_ib *)&q.dst_addr;
    cr_expect_eq(ib->family, AF_IB);
    cr_expect_arr_eq(ib->gid, A->box.device.gids[0], 16);
    cr_expect_eq(be64toh(ib->sid), 0x01060000 | 7471);
}

Test(cm_address, a_route_that_no_device_is_on)
{
    uint32_t id = cm_create(B, RDMA_PS_TCP, 1);
    struct rdma_ucm_event_resp ev;

    cr_assert_eq(cm_resolve(B, id, NULL, "192.0.2.77", 7471), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_ADDR_ERROR);
    cr_expect((int)ev.status == -ENODEV || (int)ev.status == -ENETUNREACH, "status %d", (int)ev.status);
    cr_expect_eq(cm_resolve(B, id, NULL, "127.0.0.1", 7471), 0, "another try");
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_ADDR_RESOLVED);
    uint32_t other = cm_create(B, RDMA_PS_TCP, 1);
    cr_expect_eq(cm_resolve(B, other, "127.0.0.3", "127.0.0.1", 7471), -ENODEV, "the source of another host");
}

Test(cm_address, the_choice_of_the_source)
{
    struct cm_devices d = {.n = 2};
    struct cm_addr src, dst = {.gid = {[10] = 0xff, 0xff, 10, 1, 0, 9}};
    struct cm_route route;
    uint8_t gid[16];

    d.info[0] = (struct mad_device){.ifindex = 7, .num_gids = 2, .gids = {{[10] = 0xff, 0xff, 10, 2, 0, 1}}};
    d.info[1] = (struct mad_device){.ifindex = 8, .num_gids = 3, .gids = {{[0] = 0xfd, [15] = 1}}};
    memcpy(d.info[1].gids[1], (uint8_t[16]){[10] = 0xff, 0xff, 10, 1, 0, 1}, 16);
    memcpy(d.info[1].gids[2], (uint8_t[16]){[0] = 0xfe, 0x80, [15] = 1}, 16);
    d.info[1].scope[2] = 8;
    cr_assert(cm_devices_source(&d, dst.gid, &(struct cm_device_choice){0}, gid, &route));
    cr_expect_eq(route.device, 1, "the most similar address");
    cr_expect_eq(route.sgid_index, 1);
    cr_assert(cm_devices_source(&d, dst.gid, &(struct cm_device_choice){.ifindex = 7}, gid, &route));
    cr_expect_eq(route.device, 0);
    cr_expect_not(cm_devices_source(&d, dst.gid, &(struct cm_device_choice){.ifindex = 9}, gid, &route));
    cr_expect(cm_devices_find(&d, d.info[1].gids[2], 8, &route));
    cr_expect_not(cm_devices_find(&d, d.info[1].gids[2], 7, &route), "link-local on another interface");
    memset(&src, 0, sizeof(src));
    memcpy(dst.gid, d.info[0].gids[0], 16);
    cr_assert_eq(cm_resolve_route_to(&d, &dst, 0, &src, &route), 0);
    cr_expect_arr_eq(src.gid, dst.gid, 16, "an own address is reached from itself");
    dst = (struct cm_addr){.gid = {[10] = 0xff, 0xff}};
    memset(&src, 0, sizeof(src));
    cr_assert_eq(cm_resolve_route_to(&d, &dst, 0, &src, &route), 0);
    cr_expect(cm_devices_find(&d, dst.gid, 0, &route), "0.0.0.0 is this host");
}

Test(cm_address, loopback_destinations_without_a_device_there)
{
    struct cm_addr dst = {.gid = {[10] = 0xff, 0xff, 127, 0, 0, 1}}, src = {.v6 = false};
    struct cm_devices d = {.n = 1};
    struct cm_route route;

    d.info[0] = (struct mad_device){.ifindex = 7, .num_gids = 1, .gids = {{[10] = 0xff, 0xff, 10, 2, 0, 1}}};
    cr_assert_eq(cm_resolve_route_to(&d, &dst, 0, &src, &route), 0);
    cr_expect_arr_eq(dst.gid, d.info[0].gids[0], 16, "mean this host");
    cr_expect_arr_eq(src.gid, d.info[0].gids[0], 16);
}

Test(cm_address, addresses_of_af_ib)
{
    struct ucma_sockaddr_ib sib = {.family = AF_IB, .sid = htobe64(0x01060000), .sid_mask = htobe64(~0xffffull)};
    uint32_t id = cm_create(A, RDMA_PS_IB, 1), bound = cm_create(A, RDMA_PS_TCP, 2);
    struct rdma_ucm_query_addr_resp q;

    cr_expect_eq(cm_bind_to(A, id, &sib, sizeof(sib)), 0, "librdmacm looks whether this works");
    memcpy(sib.gid, A->box.device.gids[0], 16);
    sib.sid = htobe64(0x01060000 | 7471);
    cr_expect_eq(cm_bind_to(A, bound, &sib, sizeof(sib)), 0);
    cr_assert_eq(query(A, bound, RDMA_USER_CM_QUERY_ADDR, &q, sizeof(q)), 0);
    cr_expect_eq(q.src_size, sizeof(sib));
    cr_expect_arr_eq(((const struct ucma_sockaddr_ib *)&q.src_addr)->gid, sib.gid, 16);
    cr_expect_eq(be64toh(q.node_guid), 0x1000);
}

static int set_option(struct cm_node *n, uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t len)
{
    struct rdma_ucm_set_option in = {.id = id, .level = level, .optname = name, .optlen = len};

    return cm_command_extra(n, n->channel, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), value, len, NULL, 0);
}

Test(cm_address, options)
{
    uint32_t id = cm_create(A, RDMA_PS_TCP, 1), twin = cm_create(A, RDMA_PS_TCP, 2);
    uint8_t tos = 0x28, timeout = 40;
    int on = 1;

    cr_expect_eq(set_option(A, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
    cr_expect_eq(set_option(A, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, 4), -EINVAL);
    cr_expect_eq(set_option(A, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, 4), 0);
    cr_expect_eq(set_option(A, twin, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, 4), 0);
    cr_expect_eq(set_option(A, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, 4), 0);
    cr_expect_eq(set_option(A, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), -EINVAL);
    cr_expect_eq(set_option(A, id, RDMA_OPTION_ID, 99, &on, 4), -ENOSYS);
    cr_expect_eq(set_option(A, id, 7, 0, &on, 4), -ENOSYS);
    cr_expect_eq(cm_bind_ip(A, id, "127.0.0.1", 7471), 0);
    cr_expect_eq(cm_bind_ip(A, twin, "127.0.0.1", 7471), 0, "both want to reuse");
}

static int join_group(struct cm_node *n, uint32_t id, const char *ip, uint16_t flags, uint32_t *group)
{
    struct rdma_ucm_join_mcast in = {
        .uid = 900, .id = id, .addr_size = sizeof(struct sockaddr_in), .join_flags = flags};
    struct sockaddr_in a = cm_sockaddr(ip, 0);
    struct rdma_ucm_create_id_resp out = {0};

    memcpy(&in.addr, &a, sizeof(a));
    int rc = cm_command(n, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), &out, sizeof(out));
    *group = out.id;
    return rc;
}

static int leave_group(struct cm_node *n, uint32_t group)
{
    struct rdma_ucm_destroy_id in = {.id = group};
    struct rdma_ucm_destroy_id_resp out = {0};
    int rc = cm_command(n, RDMA_USER_CM_CMD_LEAVE_MCAST, &in, sizeof(in), &out, sizeof(out));

    return rc ? rc : (int)out.events_reported;
}

Test(cm_address, multicast_groups)
{
    static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
    uint32_t id = cm_create(A, RDMA_PS_UDP, 1), group, other;
    struct rdma_ucm_event_resp ev;

    cr_expect_eq(join_group(A, id, "239.1.2.3", 0, &group), -EINVAL, "no device yet");
    cr_assert_eq(cm_bind_ip(A, id, "127.0.0.1", 0), 0);
    cr_expect_eq(join_group(A, id, "10.1.2.3", 0, &group), -EINVAL);
    cr_expect_eq(join_group(A, id, "239.1.2.3", 7, &group), -EINVAL);
    cr_assert_eq(join_group(A, id, "239.1.2.3", 0, &group), 0);
    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_MULTICAST_JOIN);
    cr_expect_eq(ev.uid, 900);
    cr_expect_eq(ev.id, group);
    cr_expect_eq(ev.param.ud.qp_num, 0xffffff);
    cr_expect_eq(ev.param.ud.qkey, 0x01234567);
    cr_expect_arr_eq(ev.param.ud.ah_attr.grh.dgid, mgid, 16);
    cr_expect_eq(leave_group(A, group), 1);
    cr_expect_eq(leave_group(A, group), -ENOENT);
    cr_assert_eq(join_group(A, id, "239.1.2.4", 1, &other), 0);
    cr_expect_eq(cm_bytes(A->pipe), 1);
    cr_expect_eq(leave_group(A, other), 0);
    cr_expect_eq(cm_bytes(A->pipe), 0, "an unread event goes with its group");
    cr_assert_eq(join_group(A, id, "239.1.2.4", 1, &other), 0);
    cr_expect_eq(cm_destroy(A, id), 1, "the event that was read");
    cr_expect_eq(A->t.host.joins.count, 0);
}
