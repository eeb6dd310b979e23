// SPDX-License-Identifier: BSD-2-Clause
/* Multicast: each member QP gets one copy, on the sender's device and on other devices. A QP that has left the group
 * gets none. */
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/verbs/ends.h"

#define MEMBERS 3
static struct vt_end a, member[MEMBERS];
/* An IPv4 group, for a device with an IPv4 address; ff15::239:5:28:1 for others. */
static union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 5, [14] = 28, [15] = 1}};
static const union ibv_gid group6 = {.raw = {0xff, 0x15, [12] = 239, [13] = 5, [14] = 28, [15] = 1}};
static const union ibv_gid mapped = {.raw = {[10] = 0xff, [11] = 0xff}};

/* Lets the kernel join the group on the network interface of the device, as rdma_cm does it. ibv_attach_mcast(3) leaves
 * that to the program; Pumice does it itself. The membership ends with the process. */
static void join_network(struct ibv_context *ctx)
{
    struct ibv_gid_entry e;
    if (vt_is_pumice())
        return;
    need(ibv_query_gid_ex(ctx, vt_port(), vt_gid_index(ctx), &e, 0) == 0);
    bool v4 = !memcmp(&group, &mapped, 12);
    int sock = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
    struct ip_mreqn four = {.imr_ifindex = (int)e.ndev_ifindex};
    struct ipv6_mreq six = {.ipv6mr_interface = e.ndev_ifindex};
    memcpy(&four.imr_multiaddr, group.raw + 12, 4);
    memcpy(&six.ipv6mr_multiaddr, group.raw, 16);
    need(sock >= 0);
    need((v4 ? setsockopt(sock, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four))
             : setsockopt(sock, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &six, sizeof(six))) == 0);
}

static void open_ud(struct vt_end *e, struct ibv_context *ctx)
{
    vt_end_open(e, ctx);
    need((e->qp = vt_end_qp(e, IBV_QPT_UD, NULL, 0)));
    need(vt_to_init(e->qp) == 0 && vt_to_rtr(e->qp, 0) == 0 && vt_to_rts(e->qp) == 0);
}

static void shout(struct ibv_ah *ah, const char *what)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = VT_QKEY}};
    strcpy(a.buf, what);
    need(vt_end_post(&a, &wr, 0, 32) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS);
}

static bool heard(struct vt_end *e, const char *what)
{
    struct ibv_wc wc = vt_next(e->rcq);
    return wc.status == IBV_WC_SUCCESS && wc.byte_len == 72 && wc.src_qp == a.qp->qp_num &&
           !strcmp(e->buf + 40, what) && vt_quiet(e->rcq);
}

/* A program with a fixed IPv6 group (perftest is one), where there are only IPv4 addresses. */
static void fixed_group(void)
{
    const union ibv_gid v6 = {.raw = {0xff, 1, 0, 0, 0, 2, 201, 133}};
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = v6, .hop_limit = 1}};
    if (memcmp(&a.gid, &mapped, 12) || !vt_own("an IPv6 group on devices of IPv4 addresses"))
        return;
    struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);
    ok(ah && ibv_attach_mcast(member[0].qp, &v6, 0) == 0, "an IPv6 group, on devices of IPv4 addresses");
    for (int i = 0; i < 2; i++)
        need(vt_end_recv(&member[i], 1, 0, 128) == 0);
    shout(ah, "mapped");
    ok(heard(&member[0], "mapped") && vt_quiet(member[1].rcq), "its members, and no others, get the message");
    ok(ibv_detach_mcast(member[0].qp, &v6, 0) == 0 && ibv_destroy_ah(ah) == 0, "leaving it");
}

/* The port's counter of that name; of the other host, if peer. */
static long counter(const char *name, bool peer)
{
    char path[300], text[32] = "", *own = strdup(getenv("PUMICE_SOCKET"));
    snprintf(path, sizeof(path), "%s/ports/1/counters/%s", a.ctx->device->ibdev_path, name);
    if (peer)
        setenv("PUMICE_SOCKET", getenv("VT_PEER_SOCKET"), 1);
    FILE *f = fopen(path, "r");
    need(f && fgets(text, sizeof(text), f));
    fclose(f);
    setenv("PUMICE_SOCKET", own, 1);
    free(own);
    return strtol(text, NULL, 10);
}

static struct ibv_qp *with_flags(enum ibv_qp_type type, uint32_t flags)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = a.scq,
                                       .recv_cq = a.rcq,
                                       .cap = {1, 1, 1, 1, 0},
                                       .qp_type = type,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                       .pd = a.pd,
                                       .create_flags = flags};
    return ibv_create_qp_ex(a.ctx, &init);
}

/* mckey -l asks for it. */
static void no_copy_for_the_sender(void)
{
    struct ibv_qp *qp = with_flags(IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
    ok(qp && ibv_destroy_qp(qp) == 0, "a UD QP that wants no copies of its own messages");
    errno = 0;
    ok(!with_flags(IBV_QPT_RC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) && errno == EOPNOTSUPP, "an RC QP: EOPNOTSUPP");
    errno = 0;
    ok(!with_flags(IBV_QPT_UD, IBV_QP_CREATE_SCATTER_FCS) && errno == EOPNOTSUPP, "another flag: EOPNOTSUPP");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_UNRELIABLE);
    vt_needs(ca, VT_MULTICAST);
    vt_needs(cb, VT_MULTICAST);
    struct ibv_device_attr d = vt_attr(ca).orig_attr;
    ok(d.max_total_mcast_qp_attach >= d.max_mcast_qp_attach, "the limits of multicast agree");
    open_ud(&a, ca);
    if (memcmp(&a.gid, &mapped, 12))
        group = group6;
    join_network(cb);
    for (int i = 0; i < MEMBERS; i++)
        open_ud(&member[i], cb);
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = vt_port(), .grh = {.dgid = group, .sgid_index = vt_gid_index(ca), .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);
    need(ah);
    ok(ibv_attach_mcast(member[0].qp, &group, 0) == 0 && ibv_attach_mcast(member[1].qp, &group, 0) == 0, "two join");
    ok(ibv_attach_mcast(member[1].qp, &group, 0) == 0, "one joins twice");
    for (int i = 0; i < MEMBERS; i++)
        for (int k = 0; k < 2; k++)
            need(vt_end_recv(&member[i], 1, 0, 128) == 0);
    bool counted = vt_own("counters of multicast");
    long sent = counted ? counter("multicast_xmit_packets", false) : 0;
    long received = counted ? counter("multicast_rcv_packets", ca != cb) : 0;
    shout(ah, "hear me");
    ok(heard(&member[0], "hear me") && heard(&member[1], "hear me"), "each member gets one copy");
    ok(vt_quiet(member[2].rcq), "who is no member gets none");
    ok(!counted || counter("multicast_xmit_packets", false) == sent + 1, "the port has sent one packet to a group");
    /* A packet that stays within a device is not received from a network, unless the daemon sends such packets through
     * its socket. */
    bool inside = ca == cb && !strstr(getenv("VT_DAEMON") ? getenv("VT_DAEMON") : "", "loopback wire");
    ok(!counted || counter("multicast_rcv_packets", ca != cb) == received + !inside,
       "and a host's port has received it, if it left one");
    ok(ibv_detach_mcast(member[0].qp, &group, 0) == 0, "one leaves");
    ok(ibv_detach_mcast(member[0].qp, &group, 0) != 0, "and can't leave twice");
    need(vt_end_recv(&member[1], 1, 0, 128) == 0);
    shout(ah, "again");
    ok(heard(&member[1], "again") && vt_quiet(member[0].rcq), "the next message is for the other only");
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    /* Other libraries look for the destination of the datagram among the GIDs, where no group is. */
    ok_pumice(ibv_init_ah_from_wc(member[1].ctx, vt_port(), &wc, (struct ibv_grh *)(void *)member[1].buf, &attr) == 0 &&
                  !memcmp(&attr.grh.dgid, &a.gid, 16),
              "its sender can be answered");
    fixed_group();
    if (vt_own("flags of new QPs"))
        no_copy_for_the_sender();
    ok(vt_fails(ibv_attach_mcast(a.qp, &a.gid, 0), EINVAL), "an address that is no group: EINVAL");
    struct ibv_qp *rc = vt_end_qp(&a, IBV_QPT_RC, NULL, 0);
    ok(rc && vt_fails(ibv_attach_mcast(rc, &group, 0), EINVAL), "an RC QP: EINVAL");
    need(ibv_destroy_qp(rc) == 0 && ibv_destroy_ah(ah) == 0);
    ok(vt_fails(ibv_destroy_qp(member[1].qp), EBUSY), "a queue pair in a group can't be destroyed: EBUSY");
    need(ibv_detach_mcast(member[1].qp, &group, 0) == 0);
    bool closed = vt_end_close(&a);
    for (int i = 0; i < MEMBERS; i++)
        closed &= vt_end_close(&member[i]);
    ok(closed, "all is closed");
}

int main(void)
{
    return vt_both(test);
}
