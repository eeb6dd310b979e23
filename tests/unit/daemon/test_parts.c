// SPDX-License-Identifier: BSD-2-Clause
/* Small parts of the daemon, each by itself: handle tables, delayed packets, GIDs, MTUs, sniffers, event pipes, log
 * rates. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/handles.h"
#include "daemon/base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/delay_queue.h"
#include "daemon/net/netdev.h"
#include "daemon/net/sniffer.h"
#include "daemon/session/event_pipe.h"
#include "daemon/session/segment.h"

/* --- handles
 * ------------------------------------------------------------------------------------------------------------- */

Test(handles, numbers_find_only_their_object)
{
    struct handles t = {.limit = 3};
    int a, b, c, d;
    uint32_t ha, hb, hc, hd;

    cr_assert_eq(handles_add(&t, &a, &ha), 0);
    cr_assert_eq(handles_add(&t, &b, &hb), 0);
    cr_assert_eq(handles_add_at(&t, &c, 0xffffffff), 0);
    cr_assert_neq(ha, 0);
    cr_assert_neq(ha, hb);
    cr_assert_eq(handles_get(&t, ha), &a);
    cr_assert_eq(handles_get(&t, 0xffffffff), &c);
    cr_assert_null(handles_get(&t, 0));
    cr_assert_null(handles_get(&t, hb + 1));
    cr_assert_eq(handles_add(&t, &d, &hd), -ENOSPC);
    cr_assert_eq(handles_add_at(&t, &d, ha), -EEXIST);
    handles_remove(&t, ha);
    handles_remove(&t, ha);
    cr_assert_eq(t.count, 2);
    cr_assert_null(handles_get(&t, ha));
    cr_assert_eq(handles_add(&t, &d, &hc), 0);
    cr_assert_neq(hc, ha, "a number that was just freed comes back late");
    while (handles_any(&t))
        handles_remove(&t, handles_any(&t) == &c ? 0xffffffff : handles_any(&t) == &b ? hb : hc);
    cr_assert_eq(t.count, 0);
}

Test(handles, wraps_around_what_is_taken)
{
    struct handles t = {.next = 0xfffffe};
    int a, b;
    uint32_t h;

    handles_add_at(&t, &a, 1);
    cr_assert_eq(handles_add(&t, &b, &h), 0);
    cr_assert_eq(h, 0xffffff, "the last that clients take");
    cr_assert_eq(handles_add(&t, &b, &h), 0);
    cr_assert_eq(h, 2, "neither 0 nor 1");
    handles_remove(&t, 1);
    handles_remove(&t, 2);
    handles_remove(&t, 0xffffff);
    cr_assert_null(t.hash);
}

/* What clients keep by number stays small, however often objects come and go. */
Test(handles, numbers_are_of_the_order_of_the_limit)
{
    struct handles t = {.limit = 4};
    int a[3], b;
    uint32_t h, first, last = 0;

    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(handles_add(&t, &a[i], &h), 0);
    cr_assert_eq(handles_add(&t, &b, &first), 0);
    for (unsigned i = 0; i < 1000; i++) {
        handles_remove(&t, last ? last : first);
        cr_assert_eq(handles_add(&t, &b, &last), 0);
        cr_assert(last > 3 && last <= 4 * HANDLES_TURNS);
        cr_assert(i >= 4 * HANDLES_TURNS - 4 || last != first, "it comes back late");
    }
    cr_assert_eq(handles_add(&t, &b, &h), -ENOSPC);
    handles_remove(&t, last);
    for (h = 1; h <= 3; h++)
        handles_remove(&t, h);
    cr_assert_null(t.hash);
}

/* --- delayed packets
 * ----------------------------------------------------------------------------------------------------- */

Test(delay_queue, due_order_then_arrival_order)
{
    static const uint64_t due[] = {50, 10, 40, 10, 30, 20, 10};
    static const uint8_t order[] = {1, 3, 6, 5, 4, 2, 0};
    struct delay_queue q = {0};
    struct fault_verdict v = {.action = FAULT_PASS};
    struct av av = {.hop_limit = 9};
    struct tx_pkt pkt = {.av = &av, .len = 1};

    cr_assert_eq(delay_queue_deadline(&q), NEVER);
    for (uint8_t i = 0; i < 7; i++)
        cr_assert(delay_queue_push(&q, &pkt, &i, &v, due[i]));
    cr_assert_eq(delay_queue_deadline(&q), 10);
    cr_assert_null(delay_queue_pop(&q, 9));
    for (unsigned i = 0; i < 7; i++) {
        struct delay_queue_entry *e = delay_queue_pop(&q, 50);

        cr_assert_eq(e->data[0], order[i]);
        cr_assert_eq(e->av.hop_limit, 9);
        free(e);
    }
    cr_assert_eq(q.bytes, 0);
    delay_queue_fini(&q);
}

Test(delay_queue, bounded)
{
    static uint8_t packet[4200];
    struct delay_queue q = {0};
    struct fault_verdict v = {.action = FAULT_PASS};
    struct av av = {.hop_limit = 9};
    struct tx_pkt pkt = {.av = &av, .len = sizeof(packet)};
    unsigned n = 0;

    while (delay_queue_push(&q, &pkt, packet, &v, n))
        n++;
    cr_assert(n <= FAULTQ_PACKETS && (uint64_t)n * sizeof(packet) <= FAULTQ_BYTES);
    cr_assert(n > 3000);
    delay_queue_fini(&q);
    cr_assert_eq(delay_queue_deadline(&q), NEVER);
}

/* --- addresses
 * ----------------------------------------------------------------------------------------------------------- */

Test(addr, gids)
{
    union addr v4, v6, back;
    uint8_t gid[16];
    char text[ADDR_TEXT_MAX];

    cr_assert_eq(addr_parse("192.0.2.7", &v4), 0);
    addr_to_gid(&v4, gid);
    cr_assert_str_eq(gid_text(gid, text), "::ffff:192.0.2.7");
    cr_assert(gid_to_addr(gid, &v4, &back));
    cr_assert_str_eq(addr_text(&back, text), "192.0.2.7");
    cr_assert_eq(addr_parse("fd00::7", &v6), 0);
    cr_assert_not(gid_to_addr(gid, &v6, &back), "an IPv6 device does not reach IPv4");
    addr_to_gid(&v6, gid);
    cr_assert(gid_to_addr(gid, &v6, &back));
    cr_assert_str_eq(addr_text(&back, text), "fd00::7");
    cr_assert_not(gid_to_addr(gid, &v4, &back));
    memset(gid, 0, sizeof(gid));
    cr_assert_not(gid_to_addr(gid, &v6, &back), "the unspecified address is nobody's");
    memset(gid + 10, 0xff, 2);
    cr_assert_not(gid_to_addr(gid, &v4, &back));
    uint8_t group[16] = {0xff, 1, 0, 0, 0, 2, 0xc9, 0x85}, other[16];
    union addr there;
    memcpy(other, group, sizeof(other));
    other[15] = 1;
    cr_assert(gid_to_addr(group, &v4, &back), "a group of InfiniBand has one of IPv4");
    cr_assert_eq(ntohl(back.v4.sin_addr.s_addr) >> 18, 0xefc00000u >> 18);
    cr_assert(gid_to_addr(other, &v4, &there));
    cr_assert_neq(there.v4.sin_addr.s_addr, back.v4.sin_addr.s_addr, "and another one another");
    cr_assert(gid_to_addr(group, &v6, &back));
    cr_assert_eq(back.sa.sa_family, AF_INET6, "an IPv6 device has them as they are");
    cr_assert_eq(back.v6.sin6_addr.s6_addr[1], 2, "but for those that would not leave the host");
    cr_assert_eq(back.v6.sin6_addr.s6_addr[7], 0x85);
    uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3};
    cr_assert(gid_to_addr(ipv4, &v6, &back), "an IPv6 device reaches those of IPv4");
    cr_assert(back.v6.sin6_addr.s6_addr[0] == 0xff && back.v6.sin6_addr.s6_addr[15] == 3);
}

Test(addr, only_whole_addresses)
{
    static const char *const bad[] = {"",          "localhost", "127.1", "1.2.3",
                                      "300.0.0.1", "1.2.3.4/8", ":::",   "fe80::1%nosuch0"};
    union addr a;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_neq(addr_parse(bad[i], &a), 0, "%s", bad[i]);
    cr_assert_eq(addr_parse("fe80::1%lo", &a), 0);
    cr_assert_neq(a.v6.sin6_scope_id, 0);
}

/* The rule: the largest size whose longest packet fits. */
Test(netdev, path_mtu)
{
    cr_assert_eq(netdev_path_mtu(1500, false), 3, "1,024");
    cr_assert_eq(netdev_path_mtu(1500, true), 3);
    cr_assert_eq(netdev_path_mtu(1400, false), 3);
    cr_assert_eq(netdev_path_mtu(9000, false), 5, "4,096");
    cr_assert_eq(netdev_path_mtu(65536, false), 5);
    cr_assert_eq(netdev_path_mtu(1280, true), 3, "IPv6's least");
    cr_assert_eq(netdev_path_mtu(68, false), 0);
    for (unsigned mtu = 68; mtu < 10000; mtu++)
        cr_assert(netdev_path_mtu(mtu, true) <= netdev_path_mtu(mtu, false) &&
                  netdev_path_mtu(mtu, false) <= netdev_path_mtu(mtu + 1, false));
}

Test(netdev, loopback_has_all_of_127)
{
    struct netdev nd, other;
    union addr a, b;

    addr_parse("127.0.0.1", &a);
    addr_parse("127.9.8.7", &b);
    cr_assert_eq(netdev_find(&a, &nd), 0);
    cr_assert_eq(netdev_find(&b, &other), 0);
    cr_assert_eq(nd.index, other.index);
    cr_assert(nd.up && nd.mtu >= 16384);
    cr_assert_neq(netdev_guid(&nd, &a), netdev_guid(&nd, &b));
    cr_assert_eq(netdev_guid(&nd, &a), netdev_guid(&other, &a), "the same each time");
    cr_assert_eq(netdev_guid(&nd, &a) >> 56 & 3, 2, "locally administered, individual");
    addr_parse("203.0.113.99", &a);
    cr_assert_neq(netdev_find(&a, &nd), 0);
}

Test(sniffer, who_counts)
{
#define HEAD "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n"
#define ROW(proto, iface) "0000000000000000 3      3    " proto "   " iface "     1 0      0      4711\n"
    cr_assert_not(sniffer_in_text("", 2, 1));
    cr_assert_not(sniffer_in_text(HEAD, 2, 1));
    cr_assert(sniffer_in_text(HEAD ROW("0003", "2"), 2, 1), "on our interface");
    cr_assert(sniffer_in_text(HEAD ROW("0003", "0"), 2, 1), "on all");
    cr_assert(sniffer_in_text(HEAD ROW("0003", "1"), 2, 1), "on the loopback, where packets to our own addresses pass");
    cr_assert_not(sniffer_in_text(HEAD ROW("0003", "3"), 2, 1), "on another");
    cr_assert_not(sniffer_in_text(HEAD ROW("88cc", "2"), 2, 1), "LLDP only");
    cr_assert(sniffer_in_text(HEAD ROW("88cc", "2") ROW("0003", "2"), 2, 1));
}

/* --- pipes, segments, log
 * ------------------------------------------------------------------------------------------------ */

Test(event_pipe, nothing_lost_nothing_doubled)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct evrecord r;
    struct event_pipe p;
    unsigned sent = 0, got = 0, skipped = 0;

    cr_assert_eq(event_pipe_init(&p, loop), 0);
    fcntl(p.read_fd, F_SETFL, O_NONBLOCK);
    while (p.n < 100) /* the kernel's buffer first, then ours */
        cr_assert(event_pipe_push(&p, ++sent, 7));
    cr_assert(event_pipe_push(&p, sent, 7), "it waits already");
    cr_assert_eq(p.n, 100);
    cr_assert_eq(event_pipe_forget(&p, (struct evrecord[]){{sent - 5, 7}, {300, 7}, {301, 8}}, 3, 1), 0);
    cr_assert_eq(p.n, 98, "one was waiting, one was in the pipe and has left its place to another");
    for (int i = 0; i < 3; i++) {
        while (read(p.read_fd, &r, sizeof(r)) == sizeof(r)) {
            got++;
            skipped += got + skipped == 300 || got + skipped == sent - 5;
            cr_assert_eq(r.a, got + skipped);
            cr_assert_eq(r.b, 7);
        }
        ev_run(loop, EVRUN_NOWAIT);
    }
    cr_assert_eq(got, sent - 2);
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

static unsigned unread(const struct event_pipe *p)
{
    int bytes = -1;

    cr_assert(ioctl(p->write_fd, FIONREAD, &bytes) == 0);
    return (unsigned)bytes / sizeof(struct evrecord);
}

static const struct evrecord gone = {1, 1}, stays = {2, 2};

static void push_both(struct event_pipe *p, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        cr_assert(event_pipe_push(p, gone.a, gone.b));
        cr_assert(event_pipe_push(p, stays.a, stays.b));
    }
}

/* Each of three sharers has one record of each event. */
Test(event_pipe, sharers)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct evrecord r;
    struct event_pipe p;

    cr_assert_eq(event_pipe_init(&p, loop), 0);
    push_both(&p, 6);
    event_pipe_forget(&p, &gone, 1, 3);
    cr_assert_eq(unread(&p), 10, "one of two events each");
    for (unsigned i = 0; i < 6; i++)
        cr_assert_eq(read(p.read_fd, &r, sizeof(r)), (ssize_t)sizeof(r));
    event_pipe_forget(&p, &gone, 1, 2);
    cr_assert_eq(unread(&p), 4, "whose the one is nobody knows");
    event_pipe_forget(&p, &gone, 1, 1);
    cr_assert_eq(unread(&p), 3, "the last one takes it");
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

/* Whatever a client does with its end, the daemon neither waits nor loses more than that client's records. */
Test(event_pipe, hostile_reader, .timeout = 20)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    char path[64], some[5];
    struct event_pipe p;
    int fd;

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(event_pipe_init(&p, loop), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", p.read_fd);
    cr_assert(event_pipe_forget(&p, &gone, 1, 1) == 0 && unread(&p) == 0, "an empty pipe");
    push_both(&p, 10);
    cr_assert_eq(read(p.read_fd, some, sizeof(some)), (ssize_t)sizeof(some), "half a record");
    event_pipe_forget(&p, &gone, 1, 1);
    while (unread(&p) > 0)
        cr_assert_gt(read(p.read_fd, some, 1), 0);
    fd = open(path, O_WRONLY);
    cr_assert(fd >= 0 && write(fd, some, sizeof(some)) == sizeof(some), "it writes");
    push_both(&p, 10);
    event_pipe_forget(&p, &gone, 1, 1);
    event_pipe_forget(&p, &stays, 1, 1);
    close(fd);
    cr_assert_geq(fcntl(p.read_fd, F_SETPIPE_SZ, 1 << 20), 1 << 20, "it makes it large");
    while (unread(&p) < 100000)
        cr_assert(event_pipe_push(&p, stays.a, unread(&p)));
    event_pipe_forget(&p, &gone, 1, 1);
    cr_assert_eq(unread(&p), 100000);
    cr_assert_eq(p.n, 0);
    close(event_pipe_take_read_fd(&p));
    event_pipe_forget(&p, &gone, 1, 1);
    cr_assert(event_pipe_push(&p, 3, 3) && p.n == 0, "it closes it: nobody will read this");
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

/* What is waiting goes; what is in the pipe can't be had without a descriptor, and stays. */
Test(event_pipe, without_a_descriptor)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct rlimit was;
    struct event_pipe p;
    unsigned full;

    cr_assert_eq(event_pipe_init(&p, loop), 0);
    do
        push_both(&p, 1);
    while (p.n < 2);
    full = unread(&p);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, was.rlim_max}), 0);
    event_pipe_forget(&p, &gone, 1, 1);
    setrlimit(RLIMIT_NOFILE, &was);
    cr_assert(p.n == 1 && unread(&p) == full);
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

Test(event_pipe, bounded_and_safe_without_reader)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct event_pipe p;
    uint32_t n = 0;

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(event_pipe_init(&p, loop), 0);
    while (event_pipe_push(&p, n, n))
        n++;
    cr_assert_eq(p.n, EVPIPE_WAITING_MAX);
    close(event_pipe_take_read_fd(&p));
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert_eq(p.n, 0, "nobody will read it");
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

Test(segment, client_can_not_shrink_it)
{
    struct segment s;
    int fd;

    cr_assert_eq(segment_create(&s, "test", 100), 0);
    cr_assert_eq(s.size, 4096);
    fd = segment_take_fd(&s);
    cr_assert_eq(s.fd, -1);
    cr_assert_neq(ftruncate(fd, 0), 0);
    cr_assert_neq(ftruncate(fd, 8192), 0);
    cr_assert_neq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0, "nor add seals of its own");
    ((char *)s.p)[4095] = 1;
    close(fd);
    segment_destroy(&s);
}

Test(log, rate)
{
    struct log_rate rate = {0};
    uint32_t left_out, said = 0;

    for (int i = 0; i < 1000; i++)
        said += log_rate_allows(&rate, &left_out);
    cr_assert(said >= LOG_RATE_BURST && said <= 2 * LOG_RATE_BURST + 1, "%u", said);
    usleep(1100000);
    cr_assert(log_rate_allows(&rate, &left_out));
    cr_assert_gt(left_out, 0, "it says how many were left out");
}

Test(log, levels_of_areas)
{
    struct log_levels l;

    cr_assert_eq(log_levels_parse("info", &l), 0);
    for (unsigned i = 0; i < LOG_AREAS; i++)
        cr_expect_eq(l.of[i], LOG_LEVEL_INFO);
    cr_assert_eq(log_levels_parse("qp=debug,error,packet=info", &l), 0);
    cr_expect_eq(l.of[LOG_QP], LOG_LEVEL_DEBUG);
    cr_expect_eq(l.of[LOG_PACKET], LOG_LEVEL_INFO);
    cr_expect_eq(l.of[LOG_NET], LOG_LEVEL_ERROR);
    cr_assert_eq(log_levels_parse("qp=debug", &l), 0);
    cr_expect_eq(l.of[LOG_NET], LOG_LEVEL_WARN, "what is not named");
    for (const char *const *bad = (const char *const[]){"", "loud", "qp=", "=info", "cpu=info", "info,", "qp", NULL};
         *bad; bad++)
        cr_expect_neq(log_levels_parse(*bad, &l), 0, "'%s' was taken", *bad);
}

/* What lines look like: standard error is a pipe for a while. */
static size_t logged(bool json, char *out, size_t size)
{
    int ends[2], saved = dup(STDERR_FILENO);
    json_t *fields = json_pack("{s:i}", "qpn", 17);
    ssize_t n;

    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_set_level(LOG_LEVEL_INFO);
    log_set_json(json);
    log_write_fields(LOG_QP, LOG_LEVEL_INFO, fields, "a \"text\"");
    log_write_fields(LOG_QP, LOG_LEVEL_DEBUG, fields, "too much");
    log_write(LOG_NET, LOG_LEVEL_ERROR, "%d", 5);
    dup2(saved, STDERR_FILENO);
    n = read(ends[0], out, size - 1);
    cr_assert_gt(n, 0);
    out[n] = 0;
    log_set_json(false);
    json_decref(fields);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    return (size_t)n;
}

Test(log, text_and_json)
{
    char out[1000], *second;
    json_t *o;

    logged(false, out, sizeof(out));
    cr_expect_str_eq(out, "pumiced: info: qp: a \"text\"\npumiced: error: net: 5\n");
    logged(true, out, sizeof(out));
    second = strchr(out, '\n');
    cr_assert_not_null(second);
    *second++ = 0;
    o = json_loads(out, 0, NULL);
    cr_assert_not_null(o);
    cr_expect_str_eq(json_string_value(json_object_get(o, "text")), "a \"text\"");
    cr_expect_str_eq(json_string_value(json_object_get(o, "area")), "qp");
    cr_expect_eq(json_integer_value(json_object_get(o, "qpn")), 17);
    json_decref(o);
    o = json_loads(second, 0, NULL);
    cr_assert_not_null(o);
    json_decref(o);
}
