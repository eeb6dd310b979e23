// SPDX-License-Identifier: BSD-2-Clause
/* cm_gen FILE.pcapng: writes a capture with messages of connection management, over IPv4 and IPv6. For each it prints
 * what a reader of the capture must find: lines of packet number, name of a field of tshark or of our dissector, value.
 * tests/e2e/capture/cm_tshark.sh uses it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pcap/capfile.h"
#include "wire/cm_msg.h"
#include "wire/gid.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

static struct capfile file;
static unsigned packets;

static void expect(const char *field, uint64_t value)
{
    printf("%u infiniband.%s 0x%" PRIx64 "\n", packets, field, value);
}

/* A field of our dissector. */
static void expect_own(const char *field, uint64_t value)
{
    printf("%u pumice.cm.%s 0x%" PRIx64 "\n", packets, field, value);
}

static int put(const struct cm_msg *m, bool is_v6)
{
    struct frame_flow flow = {.src_port = 50001, .dst_port = ROCE_PORT};
    struct icrc_flow icrc_flow = {.src_port = flow.src_port, .dst_port = flow.dst_port, .is_v6 = is_v6};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = MAD_QPN,
                    .psn = packets,
                    .deth = {MAD_QKEY, MAD_QPN}};
    struct icrc_ctx ctx;
    uint8_t buf[PKT_HEADERS_MAX + MAD_LEN + ICRC_LEN];

    if (is_v6) {
        memcpy(flow.src, (const uint8_t[16]){0xfd, [15] = 1}, 16);
        memcpy(flow.dst, (const uint8_t[16]){0xfd, [15] = 2}, 16);
    } else {
        gid_from_v4(flow.src, (const uint8_t[]){192, 0, 2, 1});
        gid_from_v4(flow.dst, (const uint8_t[]){192, 0, 2, 2});
    }
    memcpy(icrc_flow.src, flow.src, 16);
    memcpy(icrc_flow.dst, flow.dst, 16);
    icrc_ctx_init(&ctx, &icrc_flow);
    size_t len = pkt_encode(&p, buf);
    cm_msg_encode(m, buf + len);
    len += MAD_LEN;
    icrc_store(buf + len, icrc_compute(&ctx, 0, buf, len));
    packets++;
    expect("mad.mgmtclass", MAD_CLASS_CM);
    expect("mad.attributeid", m->attribute);
    expect("mad.transactionid", m->transaction_id);
    expect_own("message", m->attribute);
    return capfile_add_udp(&file, 0, 1700000000000000000u + packets, &flow, buf, len + ICRC_LEN, PCAPNG_DIR_OUT, NULL);
}

static void expect_req(const struct cm_req *q)
{
    expect("cm.req", q->local_comm_id);
    expect("cm.req.serviceid", q->service_id);
    expect("cm.req.localcaguid", q->local_ca_guid);
    expect("cm.req.localqkey", q->local_qkey);
    expect("cm.req.localqpn", q->local_qpn);
    expect("cm.req.responderres", q->responder_resources);
    expect("cm.req.initdepth", q->initiator_depth);
    expect("cm.req.localeecn", q->local_eecn);
    expect("cm.req.remoteeecn", q->remote_eecn);
    expect("cm.req.remoteresptout", q->remote_response_timeout);
    expect("cm.req.transpsvctype", q->transport);
    expect("cm.req.e2eflowctrl", q->flow_control);
    expect("cm.req.startpsn", q->starting_psn);
    expect("cm.req.localresptout", q->local_response_timeout);
    expect("cm.req.retrcount", q->retry_count);
    expect("cm.req.pkey", q->pkey);
    expect("cm.req.pppmtu", q->path_mtu);
    expect("cm.req.rdcexist", q->rdc_exists);
    expect("cm.req.rnrretrcount", q->rnr_retry_count);
    expect("cm.req.maxcmretr", q->max_cm_retries);
    expect("cm.req.srq", q->srq);
    expect("cm.req.ext_transport", q->extended_transport);
    expect("cm.req.prim_locallid", q->primary.local_lid);
    expect("cm.req.prim_remotelid", q->primary.remote_lid);
    /* Not flow label and packet rate: Wireshark 4.0 takes other bits of their word than IBA table 106 and Linux. */
    expect("cm.req.prim_tfcclass", q->primary.traffic_class);
    expect("cm.req.prim_hoplim", q->primary.hop_limit);
    expect("cm.req.prim_sl", q->primary.sl);
    expect("cm.req.prim_subnetlocal", q->primary.subnet_local);
    expect("cm.req.prim_localacktout", q->primary.local_ack_timeout);
    expect("cm.req.alt_tfcclass", q->alternate.traffic_class);
    expect("cm.req.alt_localacktout", q->alternate.local_ack_timeout);
}

/* salt: each bit of the small fields is set in one of the requests. */
static int put_req(bool is_v6, uint32_t salt)
{
    struct cm_msg m = {.transaction_id = 0x8123456789abcdefu + salt, .attribute = CM_REQ};
    struct cm_req *q = &m.req;
    struct cm_ip_header ip = {.ip_version = is_v6 ? 6 : 4, .source_port = 0x9abc};

    *q = (struct cm_req){
        .local_comm_id = 0xf1000001 + salt,
        .service_id = cm_service_id(CM_PS_TCP, (uint16_t)(7174 + salt)),
        .local_ca_guid = 0xfedcba9876543210u,
        .local_qkey = 0x80000001 + salt,
        .local_qpn = 0x800011,
        .local_eecn = 0x812345,
        .remote_eecn = 0x854321,
        .responder_resources = 0x81,
        .initiator_depth = 0x42,
        .remote_response_timeout = 20 ^ (salt & 31),
        .local_response_timeout = 11 ^ (salt & 31),
        .transport = salt & 3,
        .extended_transport = salt & 7,
        .flow_control = salt & 1,
        .starting_psn = 0x8fedcb,
        .retry_count = ~salt & 7,
        .rnr_retry_count = salt & 7,
        .max_cm_retries = 15 ^ (salt & 15),
        .pkey = 0xffff,
        .path_mtu = 5,
        .rdc_exists = !(salt & 1),
        .srq = salt & 1,
        .primary = {.local_lid = 0xffff,
                    .remote_lid = 0xfffe,
                    .flow_label = 0x81234,
                    .packet_rate = 0x2a,
                    .traffic_class = 0x96,
                    .hop_limit = 64,
                    .sl = 9,
                    .subnet_local = salt & 1,
                    .local_ack_timeout = 19},
        .alternate = {.traffic_class = 0x69, .local_ack_timeout = 17},
    };
    memset(ip.source, 0xfd, 16);
    memset(ip.destination, 0xfe, 16);
    cm_ip_header_encode(&ip, q->private_data);
    int err = put(&m, is_v6);
    expect_req(q);
    expect("cm.req.ip_cm.majv", 0);
    expect("cm.req.ip_cm.minv", 0);
    expect("cm.req.ip_cm.ipv", ip.ip_version);
    expect("cm.req.ip_cm.sport", ip.source_port);
    if (is_v6) {
        printf("%u infiniband.cm.req.ip_cm.sip6 fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd\n", packets);
        printf("%u infiniband.cm.req.ip_cm.dip6 fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe\n", packets);
    } else {
        printf("%u infiniband.cm.req.ip_cm.sip4 253.253.253.253\n", packets);
        printf("%u infiniband.cm.req.ip_cm.dip4 254.254.254.254\n", packets);
    }
    return err;
}

static int put_rep(uint32_t salt)
{
    struct cm_msg m = {.transaction_id = salt, .attribute = CM_REP};
    struct cm_rep *r = &m.rep;

    *r = (struct cm_rep){
        .local_comm_id = 0xe1000001 + salt,
        .remote_comm_id = 0xf1000001 + salt,
        .local_qkey = 0x80000002,
        .local_qpn = 0x800022,
        .local_eecn = 0x81a1a1,
        .starting_psn = 0x8abcde,
        .responder_resources = 0x83,
        .initiator_depth = 0x44,
        .target_ack_delay = 15 ^ (salt & 31),
        .failover_accepted = salt & 3,
        .flow_control = salt & 1,
        .rnr_retry_count = ~salt & 7,
        .srq = salt & 1,
        .local_ca_guid = 0xfedcba9876543211u,
    };
    int err = put(&m, false);
    expect("cm.rep", r->local_comm_id);
    expect("cm.rep.remotecommid", r->remote_comm_id);
    expect("cm.rep.localqkey", r->local_qkey);
    expect("cm.rep.localqpn", r->local_qpn);
    expect("cm.rep.localeecn", r->local_eecn);
    expect("cm.rep.startpsn", r->starting_psn);
    expect("cm.rep.respres", r->responder_resources);
    expect("cm.rep.initdepth", r->initiator_depth);
    expect("cm.rep.tgtackdelay", r->target_ack_delay);
    expect("cm.rep.failoveracc", r->failover_accepted);
    expect("cm.rep.e2eflowctrl", r->flow_control);
    expect("cm.rep.rnrretrcount", r->rnr_retry_count);
    expect("cm.rep.srq", r->srq);
    expect("cm.rep.localcaguid", r->local_ca_guid);
    return err;
}

/* RTU, REJ, DREQ, DREP. */
static int put_short(uint16_t attribute, const char *ids)
{
    struct cm_msg m = {.transaction_id = UINT64_MAX, .attribute = attribute};
    char name[40];

    if (attribute == CM_REJ)
        m.rej = (struct cm_rej){
            .answers = CM_ANSWERS_REP, .reason = CM_REJ_CONSUMER_DEFINED, .ari_len = 72, .ari = {1, [71] = 2}};
    if (attribute == CM_DREQ)
        m.dreq.remote_qpn = 0x800033;
    m.rtu.local_comm_id = 0xc0000001; /* the same place in all of them */
    m.rtu.remote_comm_id = 0xd0000002;
    int err = put(&m, true);
    snprintf(name, sizeof(name), "cm.%s.localcommid", ids);
    expect(name, m.rtu.local_comm_id);
    snprintf(name, sizeof(name), "cm.%s.remotecommid", ids);
    expect(name, m.rtu.remote_comm_id);
    if (attribute == CM_REJ) {
        expect("cm.rej.msgrej", m.rej.answers);
        expect("cm.rej.rejinfolen", m.rej.ari_len);
        expect("cm.rej.reason", m.rej.reason);
    } else if (attribute == CM_DREQ) {
        expect("cm.req.remoteqpneecn", m.dreq.remote_qpn);
    }
    return err;
}

/* --- messages that only our dissector shows --- */

static void expect_ids(const struct cm_msg *m)
{
    expect_own("local_comm_id", m->rtu.local_comm_id);
    expect_own("remote_comm_id", m->rtu.remote_comm_id);
}

static int put_mra(uint8_t answers)
{
    struct cm_msg m = {.transaction_id = 1,
                       .attribute = CM_MRA,
                       .mra = {0xc0000001, 0xd0000002, answers, (uint8_t)(answers ? 17 : 14), {0}}};
    int err = put(&m, answers & 1);

    expect_ids(&m);
    expect_own("answers", answers);
    expect_own("service_timeout", m.mra.service_timeout);
    return err;
}

static int put_sidr_req(bool is_v6)
{
    struct cm_msg m = {.transaction_id = 2, .attribute = CM_SIDR_REQ, .sidr_req = {0xc0000003, 0x8001, 0x1111c06, {0}}};
    struct cm_ip_header ip = {.ip_version = is_v6 ? 6 : 4, .source_port = 0x9abc};

    memset(ip.source, 0xfd, 16);
    memset(ip.destination, 0xfe, 16);
    cm_ip_header_encode(&ip, m.sidr_req.private_data);
    int err = put(&m, is_v6);
    expect_own("request_id", m.sidr_req.request_id);
    expect_own("pkey", m.sidr_req.pkey);
    expect_own("service_id", m.sidr_req.service_id);
    expect_own("ip.version", ip.ip_version);
    expect_own("ip.source_port", ip.source_port);
    if (is_v6) {
        printf("%u pumice.cm.ip.source6 fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd\n", packets);
        printf("%u pumice.cm.ip.destination6 fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe\n", packets);
    } else {
        printf("%u pumice.cm.ip.source 253.253.253.253\n", packets);
        printf("%u pumice.cm.ip.destination 254.254.254.254\n", packets);
    }
    return err;
}

static int put_sidr_rep(uint8_t status)
{
    struct cm_msg m = {.transaction_id = 3,
                       .attribute = CM_SIDR_REP,
                       .sidr_rep = {.request_id = 0xc0000003,
                                    .status = status,
                                    .info_len = 72,
                                    .qpn = 0x800044,
                                    .service_id = 0x8000000001111c06,
                                    .qkey = 0x81234567}};
    int err = put(&m, false);

    expect_own("request_id", m.sidr_rep.request_id);
    expect_own("sidr_status", status);
    expect_own("info_len", m.sidr_rep.info_len);
    expect_own("qpn", m.sidr_rep.qpn);
    expect_own("service_id", m.sidr_rep.service_id);
    expect_own("qkey", m.sidr_rep.qkey);
    return err;
}

static int put_lap(void)
{
    struct cm_msg m = {.transaction_id = 4,
                       .attribute = CM_LAP,
                       .lap = {.local_comm_id = 0xc0000001,
                               .remote_comm_id = 0xd0000002,
                               .remote_qpn = 0x800033,
                               .remote_response_timeout = 21,
                               .alternate = {.local_lid = 0x8001,
                                             .remote_lid = 0x8002,
                                             .flow_label = 0x81234,
                                             .packet_rate = 0x2a,
                                             .traffic_class = 0x96,
                                             .hop_limit = 64,
                                             .sl = 9,
                                             .subnet_local = true,
                                             .local_ack_timeout = 19}}};

    memset(m.lap.alternate.local_gid, 0xfd, 16);
    memset(m.lap.alternate.remote_gid, 0xfe, 16);
    int err = put(&m, false);
    expect_ids(&m);
    expect_own("remote_qpn", m.lap.remote_qpn);
    expect_own("response_timeout", m.lap.remote_response_timeout);
    expect_own("alt.local_lid", m.lap.alternate.local_lid);
    expect_own("alt.remote_lid", m.lap.alternate.remote_lid);
    printf("%u pumice.cm.alt.local_gid fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd\n", packets);
    printf("%u pumice.cm.alt.remote_gid fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe\n", packets);
    expect_own("alt.flow_label", m.lap.alternate.flow_label);
    expect_own("alt.packet_rate", m.lap.alternate.packet_rate);
    expect_own("alt.traffic_class", m.lap.alternate.traffic_class);
    expect_own("alt.hop_limit", m.lap.alternate.hop_limit);
    expect_own("alt.sl", m.lap.alternate.sl);
    expect_own("alt.subnet_local", m.lap.alternate.subnet_local);
    expect_own("alt.ack_timeout", m.lap.alternate.local_ack_timeout);
    return err;
}

static int put_apr(void)
{
    struct cm_msg m = {.transaction_id = 5,
                       .attribute = CM_APR,
                       .apr = {0xc0000001, 0xd0000002, 72, CM_APR_UNSUPPORTED, {1, [71] = 2}, {0}}};
    int err = put(&m, true);

    expect_ids(&m);
    expect_own("info_len", m.apr.info_len);
    expect_own("ap_status", m.apr.ap_status);
    return err;
}

static int write_others(void)
{
    int err = 0;

    for (uint8_t n = 0; !err && n < 3; n++) {
        err = put_mra(n);
        if (!err)
            err = put_sidr_req(n & 1);
        if (!err)
            err = put_sidr_rep(n);
    }
    if (!err)
        err = put_lap();
    return err ? err : put_apr();
}

static int write_all(void)
{
    int err = 0;

    for (uint32_t salt = 0; !err && salt < 32; salt++) {
        err = put_req(salt & 1, salt);
        if (!err)
            err = put_rep(salt);
    }
    if (!err)
        err = put_short(CM_RTU, "rtu");
    if (!err)
        err = put_short(CM_REJ, "rej");
    if (!err)
        err = put_short(CM_DREQ, "dreq");
    if (!err)
        err = put_short(CM_DREP, "drsp");
    return err ? err : write_others();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE.pcapng\n", argv[0]);
        return 2;
    }
    int err = capfile_open(&file, argv[1], "cm_gen");
    if (!err) {
        err = capfile_add_interface(&file, "lab0");
        if (err >= 0)
            err = write_all();
        int close_err = capfile_close(&file);
        err = err ? err : close_err;
    }
    if (err) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
        return 1;
    }
    return 0;
}
