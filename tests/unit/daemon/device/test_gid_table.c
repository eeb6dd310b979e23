// SPDX-License-Identifier: BSD-2-Clause
/* The GID table follows the addresses of the interface: both families, stable indexes, events, and what clients may do
 * with an index. Each test has its own network namespace with a pair of interfaces. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/monitor/sysfs.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/skip.h"

static struct fixture f;
static struct session *s;
static int events = -1;

static bool run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *fmt, ...)
{
    char cmd[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(cmd, sizeof(cmd), fmt, ap);
    va_end(ap);
    return system(cmd) == 0;
}

static bool make_namespace(void)
{
    return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
           run("exec 2>&1 >/dev/null; ip link set lo up && ip link add e0 type veth peer name e1 &&"
               " echo 0 >/proc/sys/net/ipv6/conf/e0/accept_dad && ip link set e1 up && ip link set e0 address "
               "02:00:00:00:00:01 up && ip address add 10.9.8.7/24 dev e0") &&
           /* The kernel makes the link-local address some time after the link is up. */
           run("for i in $(seq 100); do ip -6 address show dev e0 -tentative | grep -q fe80 && exit 0; sleep 0.02;"
               "done; exit 1");
}

/* A device with the given addresses. False: no namespace can be made here. */
static bool start(const char *addresses)
{
    char why[ERROR_TEXT_MAX];

    if (!make_namespace())
        return false;
    settings_init(&f.settings);
    cr_assert_eq(settings_add_device(&f.settings, "test0", addresses, why), 0, "%s", why);
    f.device = aligned_alloc(64, (sizeof(*f.device) + 63) & ~(size_t)63);
    cr_assert_eq(device_init(f.device, &f.settings, 0, why), 0);
    cr_assert_eq(device_open(f.device, why), 0, "%s", why);
    s = fixture_session_events(&f, &events);
    cr_assert_not_null(s);
    return true;
}

static void finish(void)
{
    close(events);
    fixture_end(&f);
}

/* The text of a GID as clients see it: "" if the entry is empty. */
static const char *gid(unsigned index)
{
    struct pm_query_gid_req r = {.index = index};
    struct pm_query_gid_rep rep;
    static char text[ADDR_TEXT_MAX];

    int rc = fixture_call(&f, s, PM_OP_QUERY_GID, &r, sizeof(r), &rep, sizeof(rep));
    if (rc == -ENOENT)
        return "";
    cr_assert_eq(rc, 0);
    cr_assert_eq(rep.ifindex, f.device->netdev.index);
    cr_assert_eq(rep.type, IBV_GID_TYPE_ROCE_V2);
    return gid_text(rep.gid, text);
}

/* Returns the next event, after the loop has read the kernel's messages. */
static uint32_t next_event(void)
{
    struct pm_async_event ev = {0};

    for (int i = 0; i < 300 && !fixture_event(events, &ev); i++) {
        ev_run(f.device->loop, EVRUN_NOWAIT);
        usleep(1000);
    }
    return ev.type;
}

#define NEEDS_NAMESPACE(addresses)                                                                                     \
    do {                                                                                                               \
        if (!start(addresses))                                                                                         \
            SKIP_TEST("GID table", "no network namespace with a pair of interfaces can be made here");                 \
    } while (0)

Test(gid_table, all_addresses_of_the_interface)
{
    NEEDS_NAMESPACE("10.9.8.7");
    cr_assert_str_eq(gid(0), "::ffff:10.9.8.7");
    cr_assert_str_eq(gid(1), "fe80::ff:fe00:1");
    cr_assert_str_eq(gid(2), "");
    struct pm_query_port_rep port;
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_PORT, NULL, 0, &port, sizeof(port)), 0);
    cr_assert_eq(port.gid_tbl_len, ENGINE_MAX_GIDS);
    struct pm_query_gid_req r = {.index = ENGINE_MAX_GIDS};
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_GID, &r, sizeof(r), NULL, 0), -EINVAL, "beyond the table");
    finish();
}

Test(gid_table, addresses_keep_their_index)
{
    NEEDS_NAMESPACE("10.9.8.7");
    cr_assert(run("ip -6 address add fd00::7/64 dev e0 nodad"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(gid(2), "fd00::7");
    cr_assert(run("ip address add 10.9.8.6/24 dev e0"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(gid(3), "::ffff:10.9.8.6");
    cr_assert(run("ip -6 address del fd00::7/64 dev e0"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(gid(2), "");
    cr_assert_str_eq(gid(3), "::ffff:10.9.8.6", "others stay where they are");
    cr_assert(run("ip -6 address add fd00::8/64 dev e0 nodad"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(gid(4), "fd00::8", "a new address takes an entry that was never used");
    cr_assert(run("ip -6 address add fd00::7/64 dev e0 nodad"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(gid(2), "fd00::7", "a known address gets its entry back");
    finish();
}

Test(gid_table, a_full_table_uses_absent_entries_again)
{
    char text[ADDR_TEXT_MAX];

    NEEDS_NAMESPACE("10.9.8.7");
    for (int i = 2; i < ENGINE_MAX_GIDS + 2; i++) {
        cr_assert(run("ip -6 address add fd00::%x/64 dev e0 nodad", i));
        cr_assert_eq(next_event(), i < ENGINE_MAX_GIDS ? IBV_EVENT_GID_CHANGE : 0);
    }
    snprintf(text, sizeof(text), "fd00::%x", ENGINE_MAX_GIDS - 1);
    cr_assert_str_eq(gid(ENGINE_MAX_GIDS - 1), text);
    cr_assert(run("ip -6 address del fd00::5/64 dev e0"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_neq(gid(5), "", "an address that found no room before");
    cr_assert_str_neq(gid(5), "fd00::5");
    cr_assert(run("ip address del 10.9.8.7/24 dev e0 && ip -6 address add fd00::99/64 dev e0 nodad"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(gid(0), "", "the entry of the configured address stays free");
    finish();
}

Test(gid_table, configured_addresses_come_first)
{
    if (!make_namespace())
        SKIP_TEST("GID table", "no network namespace with a pair of interfaces can be made here");
    cr_assert(run("ip address add 10.9.8.5/24 dev e0 && ip -6 address add fd00::7/64 dev e0 nodad"));
    NEEDS_NAMESPACE("127.0.0.1+127.0.0.9");
    cr_assert_str_eq(gid(0), "::ffff:127.0.0.1");
    cr_assert_str_eq(gid(1), "::ffff:127.0.0.9");
    cr_assert_str_eq(gid(2), "", "the loopback interface has addresses of other hosts");
    finish();
}

/* Opens a device. */
static void open_one(struct fixture *one, const char *name, const char *address)
{
    char why[ERROR_TEXT_MAX];

    settings_init(&one->settings);
    cr_assert_eq(settings_add_device(&one->settings, name, address, why), 0);
    one->device = aligned_alloc(64, (sizeof(*one->device) + 63) & ~(size_t)63);
    cr_assert_eq(device_init(one->device, &one->settings, 0, why), 0);
    cr_assert_eq(device_open(one->device, why), 0, "%s", why);
}

static void close_one(struct fixture *one)
{
    device_fini(one->device);
    free(one->device);
}

#define SENDERS 32
#define ARRIVE_MS 10000 /* the kernel may deliver later on a busy machine */

/* Sends a byte from each of many ports, and waits until all have arrived at one of two sockets. Returns how many the
 * first one has received. b: NULL if there is only one. */
static unsigned received(struct udp *a, int a_fd, struct udp *b, int b_fd, const union addr *to)
{
    unsigned at_a = 0, at_b = 0;

    for (int i = 0; i < SENDERS; i++) {
        int from = socket(to->sa.sa_family, SOCK_DGRAM, 0);
        cr_assert_eq(sendto(from, "x", 1, 0, &to->sa, addr_len(to)), 1);
        close(from);
    }
    for (int i = 0; at_a + at_b < SENDERS && i < ARRIVE_MS; i++) {
        at_a += udp_recv(a, a_fd);
        at_b += b ? udp_recv(b, b_fd) : 0;
        if (at_a + at_b < SENDERS)
            usleep(1000);
    }
    cr_assert_eq(at_a + at_b, SENDERS, "%u of %d datagrams arrived", at_a + at_b, SENDERS);
    return at_a;
}

/* An address that the interface has anyway is taken only as long as no daemon is configured for it. */
static void check_owner(const char *address)
{
    struct fixture other;

    if (!make_namespace())
        SKIP_TEST("GID table", "no network namespace with a pair of interfaces can be made here");
    cr_assert(run("ip address add 10.9.8.5/24 dev e0 && ip -6 address add fd00::5/64 dev e0 nodad"));
    open_one(&f, "test0", "10.9.8.7");
    open_one(&other, "test1", address);
    cr_assert(gid_table_has(&f.device->gids, other.device->gid), "taken first by the device that is not configured");
    cr_assert_not(gid_table_has(&other.device->gids, f.device->gid), "and never from its owner");
    union addr to = other.device->udp.first.own;
    struct gid_entry *e = gid_table_find(&f.device->gids, &to);
    struct udp_socket *yields = f.device->udp.socket[e - f.device->gids.entry];
    struct udp *owner = &other.device->udp, *second = &f.device->udp;
    cr_expect_eq(received(owner, owner->first.fd, second, yields->fd, &to), SENDERS, "packets go to the owner");
    close_one(&other);
    cr_expect_eq(received(second, yields->fd, NULL, -1, &to), SENDERS, "the owner is gone");
    open_one(&other, "test1", address);
    owner = &other.device->udp;
    cr_expect_eq(received(owner, owner->first.fd, second, yields->fd, &to), SENDERS, "it is back");
    close_one(&other);
    close_one(&f);
}

Test(gid_table, a_configured_address_goes_to_its_device)
{
    check_owner("10.9.8.5");
}

Test(gid_table, a_configured_address_of_ipv6_goes_to_its_device)
{
    check_owner("fd00::5");
}

/* Whatever another user tries, it gets no packets of an address that the device would leave to a daemon of its user. */
Test(gid_table, another_user_cannot_take_an_address)
{
    static const int option[] = {SO_REUSEADDR, SO_REUSEPORT};

    if (geteuid() != 0)
        SKIP_TEST("GID table", "two users: not root");
    if (!make_namespace())
        SKIP_TEST("GID table", "no network namespace with a pair of interfaces can be made here");
    cr_assert(run("ip address add 10.9.8.5/24 dev e0 && ip -6 address add fd00::5/64 dev e0 nodad"));
    open_one(&f, "test0", "10.9.8.7");
    cr_assert_eq(seteuid(65532), 0);
    for (unsigned i = 1; i < f.device->gids.n; i++) {
        const struct udp_socket *u = f.device->udp.socket[i];

        for (unsigned j = 0; j < 4; j++) {
            int on = 1, fd = socket(u->own.sa.sa_family, SOCK_DGRAM, 0);
            for (unsigned k = 0; k < 2; k++)
                cr_assert(!(j & 1u << k) || setsockopt(fd, SOL_SOCKET, option[k], &on, sizeof(on)) == 0);
            cr_expect_eq(bind(fd, &u->own.sa, addr_len(&u->own)), -1, "address %u, options %u", i, j);
            cr_expect_eq(errno, EADDRINUSE);
            close(fd);
        }
    }
    cr_assert_eq(seteuid(0), 0);
    close_one(&f);
}

static int connect_from(uint32_t qpn, uint8_t sgid_index, const char *to)
{
    struct pm_modify_qp_req m = {.qpn = qpn,
                                 .mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                                         QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER};
    union addr addr;

    cr_assert_eq(addr_parse(to, &addr), 0);
    m.attr = (struct pm_qp_attr){.qp_state = QPS_RTR, .path_mtu = 1, .dest_qp_num = 17};
    m.attr.av.sgid_index = sgid_index;
    addr_to_gid(&addr, m.attr.av.dgid);
    return fixture_call(&f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

Test(gid_table, a_queue_pair_needs_a_source_of_the_right_family)
{
    struct pm_modify_qp_req init = {.mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS};
    struct fixture_cq cq;
    struct fixture_qp qp;

    NEEDS_NAMESPACE("10.9.8.7");
    uint32_t pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 16, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 4, &qp), 0);
    init.qpn = qp.rep.qpn;
    init.attr.qp_state = QPS_INIT;
    init.attr.port_num = 1;
    cr_assert_eq(fixture_call(&f, s, PM_OP_MODIFY_QP, &init, sizeof(init), NULL, 0), 0);
    cr_assert_eq(connect_from(qp.rep.qpn, 2, "10.9.8.8"), -EINVAL, "an empty entry");
    cr_assert_eq(connect_from(qp.rep.qpn, 0, "fd00::8"), -EINVAL, "IPv4 to IPv6");
    cr_assert_eq(connect_from(qp.rep.qpn, 1, "10.9.8.8"), -EINVAL, "IPv6 to IPv4");
    cr_assert_eq(connect_from(qp.rep.qpn, 1, "fe80::8"), 0, "%s", (char *)f.rp.payload);
    finish();
}

static const char *sysfs_line(const char *dir, const char *name)
{
    static char line[80];
    char path[200];
    FILE *file;

    snprintf(path, sizeof(path), "%s" PM_SYSFS_SUFFIX "/infiniband/test0/ports/1/%s", dir, name);
    file = fopen(path, "r");
    if (!file)
        return "none";
    if (!fgets(line, sizeof(line), file))
        line[0] = 0;
    fclose(file);
    return line;
}

Test(gid_table, sysfs_follows)
{
    char dir[] = "/tmp/pumice-gids-XXXXXX", path[80];

    NEEDS_NAMESPACE("10.9.8.7");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    sysfs_create(path, &f.device, 1);
    cr_assert_str_eq(sysfs_line(path, "gids/1"), "fe80:0000:0000:0000:0000:00ff:fe00:0001\n");
    cr_assert_str_eq(sysfs_line(path, "gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    cr_assert_str_eq(sysfs_line(path, "gid_attrs/types/2"), "none");
    cr_assert(run("ip -6 address add fd00::7/64 dev e0 nodad"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(sysfs_line(path, "gids/2"), "fd00:0000:0000:0000:0000:0000:0000:0007\n");
    cr_assert_str_eq(sysfs_line(path, "gid_attrs/types/2"), "RoCE v2\n");
    cr_assert_str_eq(sysfs_line(path, "gid_attrs/ndevs/2"), "e0\n");
    cr_assert(run("ip -6 address del fd00::7/64 dev e0"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_str_eq(sysfs_line(path, "gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    cr_assert_str_eq(sysfs_line(path, "gid_attrs/ndevs/2"), "none");
    sysfs_remove(path);
    rmdir(dir);
    finish();
}
