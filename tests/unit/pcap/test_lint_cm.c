// SPDX-License-Identifier: BSD-2-Clause
/* The linter's rules about connection management: captures that are made up here, with one violation each. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "pcap/frame.h"
#include "pcap/lint/lint.h"
#include "pcap/note.h"
#include "pcap/pcapng.h"
#include "wire/cm_msg.h"
#include "wire/gid.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

enum { ACTIVE, PASSIVE };

#define TID 0x1122334455667788u
#define RESPONSE 10u /* exponent of the time to answer: 4.2 ms */
#define MS 1000000u

static const uint32_t comm_id[] = {0x1001, 0x2002}, qpn[] = {0x11, 0x22};
static const uint32_t first_psn[] = {0x100, 0xfffffe}; /* of what each side sends */

/* The capture under construction. */
static struct {
    uint8_t data[1 << 17];
    size_t len;
    uint64_t now;
    uint32_t psn[2], mad_psn[2];
    enum pcapng_direction direction;
    struct lint_options options;
} f;

static void begin(void)
{
    memset(&f, 0, sizeof(f));
    f.len = pcapng_section(f.data, sizeof(f.data), "test");
    f.len += pcapng_interface(f.data + f.len, sizeof(f.data) - f.len, NULL);
    f.now = 1700000000000000000u;
    memcpy(f.psn, first_psn, sizeof(f.psn));
    f.direction = PCAPNG_DIR_OUT;
}

TestSuite(lint_cm, .init = begin);

/* --- packets ------------------------------------------------------------------------------------------ */

static void put(int from, struct pkt p, const void *payload, size_t payload_len, uint32_t sender)
{
    struct frame_flow flow = {.src_port = 50000, .dst_port = ROCE_PORT};
    uint8_t packet[PKT_HEADERS_MAX + 512], frame[FRAME_HEAD_MAX + sizeof(packet)];
    struct note note = {.qpn = sender};
    char comment[NOTE_MAX];

    gid_from_v4(flow.src, (const uint8_t[]){192, 0, 2, from == ACTIVE ? 1 : 2});
    gid_from_v4(flow.dst, (const uint8_t[]){192, 0, 2, from == ACTIVE ? 2 : 1});
    p.migreq = true;
    p.pkey = PKEY_DEFAULT;
    size_t len = pkt_encode(&p, packet);
    memcpy(packet + len, payload, payload_len);
    len += payload_len + ICRC_LEN;
    frame_icrc(&flow, packet, len);
    size_t head = frame_head(frame, &flow, packet, len);
    memcpy(frame + head, packet, len);
    note_format(&note, comment);
    struct pcapng_packet block = {.direction = f.direction,
                                  .time_ns = f.now,
                                  .data = frame,
                                  .len = head + len,
                                  .comment = sender ? comment : NULL};
    f.len += pcapng_packet(f.data + f.len, sizeof(f.data) - f.len, &block);
    f.now += MS;
}

static struct pkt gsi_packet(int from)
{
    return (struct pkt){.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                        .dest_qpn = MAD_QPN,
                        .psn = f.mad_psn[from]++,
                        .deth = {MAD_QKEY, MAD_QPN}};
}

static void put_mad(int from, const uint8_t mad[MAD_LEN])
{
    put(from, gsi_packet(from), mad, MAD_LEN, MAD_QPN);
}

static void say(int from, struct cm_msg m)
{
    uint8_t mad[MAD_LEN];

    cm_msg_encode(&m, mad);
    put_mad(from, mad);
}

/* A message of which a byte of the MAD is changed. */
static void say_changed(int from, struct cm_msg m, unsigned at, uint8_t value)
{
    uint8_t mad[MAD_LEN];

    cm_msg_encode(&m, mad);
    mad[at] = value;
    put_mad(from, mad);
}

/* A SEND. sender: its QP, as a comment names it; 0: no comment does. */
static void data_of(int from, uint32_t psn, uint32_t sender)
{
    struct pkt p = {.opcode = OP_SEND_ONLY, .dest_qpn = qpn[!from], .psn = psn & PSN_MASK};

    put(from, p, "data", 4, sender);
}

static void data(int from)
{
    data_of(from, f.psn[from]++, qpn[from]);
}

/* --- messages ----------------------------------------------------------------------------------------- */

static struct cm_msg req(void)
{
    struct cm_msg m = {.transaction_id = TID,
                       .attribute = CM_REQ,
                       .req = {.local_comm_id = comm_id[ACTIVE],
                               .service_id = cm_service_id(CM_PS_TCP, 7471),
                               .local_qpn = qpn[ACTIVE],
                               .remote_response_timeout = RESPONSE,
                               .local_response_timeout = RESPONSE,
                               .starting_psn = first_psn[PASSIVE], /* what the sender wants to get */
                               .max_cm_retries = 2,
                               .pkey = PKEY_DEFAULT,
                               .path_mtu = 5}};
    struct cm_ip_header ip = {.ip_version = 4, .source_port = 45123};

    cm_ip_header_encode(&ip, m.req.private_data);
    return m;
}

static struct cm_msg rep(void)
{
    return (struct cm_msg){.transaction_id = TID,
                           .attribute = CM_REP,
                           .rep = {.local_comm_id = comm_id[PASSIVE],
                                   .remote_comm_id = comm_id[ACTIVE],
                                   .local_qpn = qpn[PASSIVE],
                                   .starting_psn = first_psn[ACTIVE]}};
}

/* RTU and DREP; the same members of MRA, REJ, DREQ, LAP and APR. */
static struct cm_msg with_ids(int from, uint16_t attribute)
{
    struct cm_msg m = {.transaction_id = TID, .attribute = attribute};

    m.rtu.local_comm_id = comm_id[from];
    m.rtu.remote_comm_id = comm_id[!from];
    return m;
}

static struct cm_msg dreq(int from)
{
    struct cm_msg m = with_ids(from, CM_DREQ);

    m.dreq.remote_qpn = qpn[!from];
    return m;
}

static struct cm_msg lap(int from)
{
    struct cm_msg m = with_ids(from, CM_LAP);

    m.lap.remote_qpn = qpn[!from];
    return m;
}

static struct cm_msg rej(int from, uint8_t answers, uint16_t reason)
{
    struct cm_msg m = with_ids(from, CM_REJ);

    m.rej.answers = answers;
    m.rej.reason = reason;
    return m;
}

static struct cm_msg mra(int from, uint8_t answers)
{
    struct cm_msg m = with_ids(from, CM_MRA);

    m.mra.answers = answers;
    return m;
}

static struct cm_msg sidr_req(void)
{
    struct cm_msg m = {
        .transaction_id = TID,
        .attribute = CM_SIDR_REQ,
        .sidr_req = {.request_id = 9, .pkey = PKEY_DEFAULT, .service_id = cm_service_id(CM_PS_UDP, 7174)}};
    struct cm_ip_header ip = {.ip_version = 6, .source_port = 45123};

    cm_ip_header_encode(&ip, m.sidr_req.private_data);
    return m;
}

static struct cm_msg sidr_rep(void)
{
    return (struct cm_msg){
        .transaction_id = TID,
        .attribute = CM_SIDR_REP,
        .sidr_rep = {.request_id = 9, .qpn = 0x33, .qkey = 0x1234567, .service_id = cm_service_id(CM_PS_UDP, 7174)}};
}

static void connect_both(void)
{
    say(ACTIVE, req());
    say(PASSIVE, rep());
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
}

/* --- findings ----------------------------------------------------------------------------------------- */

/* The rules with this severity that were broken, in the order of frames, such as "cm-ids cm-psn". */
static const char *rules(const struct lint_result *r, enum lint_severity severity)
{
    static char text[2][512];
    char *out = text[severity];

    out[0] = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->findings[i].severity == severity)
            snprintf(out + strlen(out), sizeof(text[0]) - strlen(out), "%s%s", out[0] ? " " : "",
                     lint_rules[r->findings[i].rule].id);
    return out;
}

/* Judges the capture, and begins another one. */
static void judge(const char *errors, const char *notes)
{
    struct lint_result r;
    FILE *file = fmemopen(f.data, f.len, "rb");

    cr_assert_not_null(file);
    cr_assert_eq(lint_run(&r, file, &f.options), 0, "%s", r.error);
    cr_expect_str_eq(rules(&r, LINT_ERROR), errors);
    cr_expect_str_eq(rules(&r, LINT_NOTE), notes);
    for (size_t i = 0; i < r.n; i++)
        cr_log_info("frame %u: %s", r.findings[i].frame, r.findings[i].text);
    lint_free(&r);
    begin();
}

/* --- what is right ------------------------------------------------------------------------------------- */

Test(lint_cm, a_connection_from_REQ_to_DREP)
{
    connect_both();
    for (int i = 0; i < 3; i++) {
        data(ACTIVE);
        data(PASSIVE);
    }
    say(ACTIVE, dreq(ACTIVE));
    data(PASSIVE); /* it has not got the DREQ yet */
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    judge("", "");
}

Test(lint_cm, messages_that_change_the_way)
{
    say(ACTIVE, req());
    say(PASSIVE, mra(PASSIVE, CM_ANSWERS_REQ));
    say(PASSIVE, rep());
    say(ACTIVE, mra(ACTIVE, CM_ANSWERS_REP));
    data(ACTIVE); /* an RTU that is lost or late: the passive side is ready all the same */
    data(PASSIVE);
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
    say(ACTIVE, lap(ACTIVE));
    say(PASSIVE, with_ids(PASSIVE, CM_APR));
    say(PASSIVE, dreq(PASSIVE));
    say(ACTIVE, dreq(ACTIVE));
    say(ACTIVE, with_ids(ACTIVE, CM_DREP));
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    judge("", "");
}

Test(lint_cm, a_datagram_service)
{
    say(ACTIVE, sidr_req());
    say(PASSIVE, sidr_rep());
    judge("", "");
}

/* The transport is extended, and the REP has the number of the target QP in another field. */
Test(lint_cm, xrc)
{
    struct cm_msg q = req(), p = rep();
    struct pkt packet = {.opcode = OP_SERVICE_XRC | OP_SEND_ONLY, .dest_qpn = qpn[PASSIVE], .psn = first_psn[ACTIVE]};

    q.req.transport = CM_TRANSPORT_EXTENDED;
    q.req.extended_transport = CM_EXTENDED_XRC;
    p.rep.local_eecn = p.rep.local_qpn;
    p.rep.local_qpn = 0;
    say(ACTIVE, q);
    say(PASSIVE, p);
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
    put(ACTIVE, packet, "data", 4, qpn[ACTIVE]);
    say(ACTIVE, dreq(ACTIVE));
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    judge("", "");
}

/* Both hosts number their connections for themselves. Here both have an active side with the same number. */
Test(lint_cm, two_connections_with_the_same_number)
{
    struct cm_msg q = req(), p = rep(), u = with_ids(PASSIVE, CM_RTU);

    connect_both();
    q.req.local_comm_id = comm_id[ACTIVE]; /* now that of the other host */
    q.req.local_qpn = 0x44;
    p.rep.remote_comm_id = comm_id[ACTIVE];
    p.rep.local_comm_id = 0x3003;
    p.rep.local_qpn = 0x55;
    u.rtu.local_comm_id = comm_id[ACTIVE];
    u.rtu.remote_comm_id = 0x3003;
    say(PASSIVE, q);
    say(ACTIVE, p);
    say(PASSIVE, u);
    data(ACTIVE);
    say(ACTIVE, dreq(ACTIVE));
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    judge("", "");
}

/* Reserved bits of REQ, REP and SIDR_REP, and the attribute modifier, carry the vendor's options. */
Test(lint_cm, ece_and_sap_are_not_reserved)
{
    struct cm_msg q = req(), p = rep();

    q.req.ece_vendor_id = p.rep.ece_vendor_id = 0xffffff;
    q.req.ece_attr_mod = p.rep.ece_attr_mod = UINT32_MAX;
    say_changed(ACTIVE, q, MAD_HEADER_LEN + 139, 0x04);
    say(PASSIVE, p);
    judge("", "");
}

/* The same connection number, but another transaction: a new connection. */
Test(lint_cm, a_number_is_used_again)
{
    struct cm_msg q = req(), p = rep();

    connect_both();
    data(ACTIVE);
    say(ACTIVE, dreq(ACTIVE));
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    q.transaction_id = p.transaction_id = TID + 1;
    q.req.starting_psn = 0x700;
    say(ACTIVE, q);
    p.rep.local_comm_id = 0x4004;
    p.rep.starting_psn = 0x800;
    say(PASSIVE, p);
    data_of(ACTIVE, 0x800, qpn[ACTIVE]);
    judge("", "");
}

/* --- single packets --------------------------------------------------------------------------------------- */

Test(lint_cm, qkey)
{
    struct pkt p = gsi_packet(ACTIVE);
    struct cm_msg q = req();
    uint8_t mad[MAD_LEN];

    p.deth.qkey = 0x11111111;
    cm_msg_encode(&q, mad);
    put(ACTIVE, p, mad, MAD_LEN, MAD_QPN);
    judge("gsi-qkey", "");
}

Test(lint_cm, length)
{
    uint8_t mad[MAD_LEN] = {1, MAD_CLASS_CM, MAD_CLASS_CM_VERSION, MAD_METHOD_SEND, [17] = CM_REQ};
    struct pkt p = gsi_packet(ACTIVE);

    put(ACTIVE, p, mad, MAD_LEN - 4, MAD_QPN);
    p.opcode = OP_SERVICE_UD | OP_SEND_ONLY_IMM;
    put(ACTIVE, p, mad, MAD_LEN, MAD_QPN);
    judge("mad-length mad-length", "");
}

Test(lint_cm, header)
{
    static const struct {
        unsigned at;
        uint8_t value;
        const char *rule;
    } t[] = {
        {0, 2, "mad-header"},     {2, 1, "mad-header"}, {3, 0x83, "mad-header"},
        {17, 0x2a, "mad-header"}, {1, 3, ""}, /* a class of which nothing is known here */
    };

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        say_changed(ACTIVE, req(), t[i].at, t[i].value);
        judge(t[i].rule, "");
    }
}

Test(lint_cm, values)
{
    struct cm_msg m = req();

    m.req.path_mtu = 6;
    say(ACTIVE, m);
    judge("cm-value", "");
    m = req();
    m.req.transport = CM_TRANSPORT_EXTENDED; /* type 0 */
    say(ACTIVE, m);
    judge("cm-value", "");
    m = req();
    m.req.private_data[0] = 0x10;
    say(ACTIVE, m);
    judge("cm-value", "");
    m = sidr_req();
    m.sidr_req.private_data[1] = 0x50;
    say(ACTIVE, m);
    judge("cm-value", "");
    m = sidr_req();
    m.sidr_req.service_id = cm_service_id(CM_PS_IB, 1); /* may be a native one */
    memset(m.sidr_req.private_data, 0x55, CM_IP_HEADER_LEN);
    say(ACTIVE, m);
    judge("", "");

    struct cm_msg answers[] = {rej(PASSIVE, 3, CM_REJ_NO_QP), rej(PASSIVE, CM_ANSWERS_REQ, 34), mra(PASSIVE, 3)};
    const char *const notes[] = {"cm-rej", "cm-rej", ""};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        say(ACTIVE, req());
        say(PASSIVE, answers[i]);
        judge("cm-value", notes[i]);
    }
    say(ACTIVE, req());
    m = rej(PASSIVE, CM_ANSWERS_REQ, CM_REJ_NO_QP);
    m.rej.ari_len = CM_REJ_ARI_LEN + 1;
    say(PASSIVE, m);
    judge("cm-value", "cm-rej");
    say(ACTIVE, sidr_req());
    m = sidr_rep();
    m.sidr_rep.status = 6;
    say(PASSIVE, m);
    judge("cm-value", "");
    say(ACTIVE, sidr_req());
    m = sidr_rep();
    m.sidr_rep.info_len = CM_SIDR_REP_INFO_LEN + 1;
    say(PASSIVE, m);
    judge("cm-value", "");
    connect_both();
    say(ACTIVE, lap(ACTIVE));
    m = with_ids(PASSIVE, CM_APR);
    m.apr.info_len = CM_APR_INFO_LEN + 1;
    say(PASSIVE, m);
    judge("cm-value", "");
}

Test(lint_cm, reserved_bits)
{
    static const unsigned at[] = {5, 18, MAD_HEADER_LEN + 4, MAD_HEADER_LEN + 139}; /* the last: beside SAP */

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        say_changed(ACTIVE, req(), at[i], 2);
        judge("cm-reserved", "");
    }
    say(ACTIVE, req());
    say(PASSIVE, rep());
    say_changed(ACTIVE, with_ids(ACTIVE, CM_RTU), 23, 1); /* the attribute modifier */
    judge("cm-reserved", "");
}

/* --- order -------------------------------------------------------------------------------------------------- */

Test(lint_cm, answers_without_a_request)
{
    say(ACTIVE, req());
    say(ACTIVE, with_ids(ACTIVE, CM_RTU)); /* no REP */
    judge("cm-unasked", "");
    say(ACTIVE, req());
    say(ACTIVE, rej(ACTIVE, CM_ANSWERS_REP, CM_REJ_CONSUMER_DEFINED));
    judge("cm-unasked", "cm-rej");
    say(ACTIVE, req());
    say(PASSIVE, dreq(PASSIVE));
    judge("cm-unasked", "");
    connect_both();
    say(PASSIVE, with_ids(PASSIVE, CM_DREP)); /* no DREQ */
    judge("cm-unasked", "");
    connect_both();
    say(PASSIVE, dreq(PASSIVE)); /* its own DREQ */
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    judge("cm-unasked", "");
    connect_both();
    say(PASSIVE, with_ids(PASSIVE, CM_APR)); /* no LAP */
    judge("cm-unasked", "");
}

/* The request may be lost in the capture. */
Test(lint_cm, answers_in_an_incomplete_capture)
{
    f.options.incomplete = true;
    say(ACTIVE, req());
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
    judge("", "cm-unasked");
}

/* At the beginning of a capture, the request may be older. Minutes later it can't. */
Test(lint_cm, answers_of_unknown_connections)
{
    struct cm_msg answers[] = {rep(), with_ids(ACTIVE, CM_RTU), mra(PASSIVE, CM_ANSWERS_REQ), sidr_rep()};
    struct cm_msg later[] = {dreq(ACTIVE), with_ids(PASSIVE, CM_DREP), lap(ACTIVE)};
    static const int from[] = {PASSIVE, ACTIVE, PASSIVE, PASSIVE};

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        say(from[i], answers[i]);
        judge("", "cm-midway");
        data(ACTIVE);
        f.now += 700000ull * MS;
        say(from[i], answers[i]);
        judge("cm-unasked", "");
    }
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) { /* a connection may live that long */
        data(ACTIVE);
        f.now += 700000ull * MS;
        say(ACTIVE, later[i]);
        judge("", "cm-midway");
    }
}

Test(lint_cm, ids)
{
    struct cm_msg m = rep();

    say(ACTIVE, req());
    m.rep.remote_comm_id ^= 0x100; /* of no REQ, but the transaction is known */
    say(PASSIVE, m);
    judge("cm-ids", "");
    say(ACTIVE, req());
    m = rej(PASSIVE, CM_ANSWERS_REQ, CM_REJ_NO_QP);
    m.rej.remote_comm_id ^= 0x100;
    say(PASSIVE, m);
    judge("cm-ids", "cm-rej");
    say(ACTIVE, req());
    say(PASSIVE, rep());
    m = with_ids(ACTIVE, CM_RTU);
    m.rtu.remote_comm_id++;
    say(ACTIVE, m);
    judge("cm-ids", "");
    connect_both();
    m = dreq(PASSIVE);
    m.dreq.local_comm_id++;
    say(PASSIVE, m);
    judge("cm-ids", "");
    connect_both();
    m = dreq(ACTIVE);
    m.dreq.remote_qpn++;
    say(ACTIVE, m);
    judge("cm-ids", "");
    connect_both();
    m = lap(ACTIVE);
    m.lap.remote_qpn++;
    say(ACTIVE, m);
    judge("cm-ids", "");
    say(ACTIVE, sidr_req());
    m = sidr_rep();
    m.sidr_rep.service_id++;
    say(PASSIVE, m);
    judge("cm-ids", "");
}

Test(lint_cm, refused)
{
    say(ACTIVE, req());
    struct cm_msg m = rej(PASSIVE, CM_ANSWERS_REQ, CM_REJ_INVALID_SERVICE_ID);
    m.rej.local_comm_id = 0; /* it has no number for what it refuses */
    say(PASSIVE, m);
    judge("", "cm-rej");
}

/* --- repetitions -------------------------------------------------------------------------------------------- */

Test(lint_cm, a_message_again)
{
    struct cm_msg m = req();

    say(ACTIVE, m);
    f.now += 5 * MS;
    say(ACTIVE, m);
    judge("", "cm-repeat");
    say(ACTIVE, m);
    f.now += 5 * MS;
    m.req.starting_psn++;
    say(ACTIVE, m);
    judge("cm-repeat-differs", "");
    connect_both();
    m = rep();
    m.rep.private_data[7] = 1;
    say(PASSIVE, m);
    judge("cm-repeat-differs", "");
    say(ACTIVE, sidr_req());
    say(ACTIVE, sidr_req());
    judge("", "cm-repeat");
}

/* The network has made copies, with the PSN of the first. */
Test(lint_cm, copies_are_no_repetitions)
{
    say(ACTIVE, req());
    f.mad_psn[ACTIVE]--;
    say(ACTIVE, req());
    f.now += 5 * MS;
    say(ACTIVE, req());
    f.mad_psn[ACTIVE] -= 2;
    say(ACTIVE, req()); /* late */
    judge("", "cm-repeat");
}

Test(lint_cm, repetitions_that_come_early_or_too_often)
{
    say(ACTIVE, req());
    say(ACTIVE, req()); /* after 1 ms of 4.2 */
    judge("", "cm-repeat cm-early-repeat");
    for (int i = 0; i < 4; i++) { /* two repetitions are allowed */
        say(ACTIVE, req());
        f.now += 5 * MS;
    }
    judge("", "cm-repeat cm-repeat cm-repeat cm-retries");
    say(ACTIVE, req());
    for (int i = 0; i < 3; i++)
        say(PASSIVE, rep());
    f.now += 5 * MS;
    say(ACTIVE, req());
    say(PASSIVE, rep()); /* one more for the REQ that came again */
    judge("", "cm-repeat cm-repeat cm-repeat cm-repeat");
    connect_both();
    say(PASSIVE, dreq(PASSIVE));
    say(PASSIVE, dreq(PASSIVE));
    judge("", "cm-repeat cm-early-repeat");
}

/* --- data ---------------------------------------------------------------------------------------------------- */

Test(lint_cm, first_psn)
{
    connect_both();
    data_of(ACTIVE, first_psn[ACTIVE] + 1, qpn[ACTIVE]);
    judge("cm-psn", "");
    connect_both();
    data_of(ACTIVE, first_psn[ACTIVE] - 1, qpn[ACTIVE]);
    judge("cm-psn", "");
    connect_both();
    data(ACTIVE);
    data_of(PASSIVE, 5, qpn[PASSIVE]);
    judge("cm-psn", "");
    /* Where packets do not leave, some may be missing. */
    f.direction = PCAPNG_DIR_UNKNOWN;
    connect_both();
    data_of(ACTIVE, first_psn[ACTIVE] + 1, 0);
    judge("", "");
    f.direction = PCAPNG_DIR_UNKNOWN;
    connect_both();
    data_of(ACTIVE, first_psn[ACTIVE] - 1, 0);
    judge("cm-psn", "");
}

Test(lint_cm, qp_of_the_sender)
{
    connect_both();
    data_of(ACTIVE, first_psn[ACTIVE], 0x77);
    judge("cm-qpn", "");
}

Test(lint_cm, the_passive_side_waits_for_the_rtu)
{
    say(ACTIVE, req());
    say(PASSIVE, rep());
    data(PASSIVE);
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
    judge("cm-before-rtu", "");
    f.direction = PCAPNG_DIR_UNKNOWN; /* the network may have changed the order */
    say(ACTIVE, req());
    say(PASSIVE, rep());
    data(PASSIVE);
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
    judge("", "cm-before-rtu");
}

Test(lint_cm, no_data_after_dreq_and_drep)
{
    connect_both();
    data(ACTIVE);
    say(ACTIVE, dreq(ACTIVE));
    data(ACTIVE);
    judge("cm-after-dreq", "");
    connect_both();
    data(ACTIVE);
    data(PASSIVE);
    say(ACTIVE, dreq(ACTIVE));
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    data(PASSIVE);
    judge("cm-after-dreq", "");
    /* The QP has another connection now, which was not made by connection management. */
    connect_both();
    data(ACTIVE);
    say(ACTIVE, dreq(ACTIVE));
    say(PASSIVE, with_ids(PASSIVE, CM_DREP));
    data_of(ACTIVE, 0x600000, qpn[ACTIVE]);
    judge("", "restart");
}
