// SPDX-License-Identifier: BSD-2-Clause
/* Makes captures of connection management in memory, and has the linter judge them. A capture has two hosts, ACTIVE and PASSIVE, with one QP
 * each. The functions that are named after messages return one that breaks no rule. A test changes it, or sends it at the wrong time. */
#ifndef PUMICE_TESTS_UNIT_PCAP_LINT_CM_FIXTURE_H
#define PUMICE_TESTS_UNIT_PCAP_LINT_CM_FIXTURE_H

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

static inline void begin(void)
{
    memset(&f, 0, sizeof(f));
    f.len = pcapng_section(f.data, sizeof(f.data), "test");
    f.len += pcapng_interface(f.data + f.len, sizeof(f.data) - f.len, NULL);
    f.now = 1700000000000000000u;
    memcpy(f.psn, first_psn, sizeof(f.psn));
    f.direction = PCAPNG_DIR_OUT;
}

/* --- packets ------------------------------------------------------------------------------------------ */

static inline void put(int from, struct pkt p, const void *payload, size_t payload_len, uint32_t sender)
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

static inline struct pkt gsi_packet(int from)
{
    return (struct pkt){.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                        .dest_qpn = MAD_QPN,
                        .psn = f.mad_psn[from]++,
                        .deth = {MAD_QKEY, MAD_QPN}};
}

static inline void put_mad(int from, const uint8_t mad[MAD_LEN])
{
    put(from, gsi_packet(from), mad, MAD_LEN, MAD_QPN);
}

static inline void say(int from, struct cm_msg m)
{
    uint8_t mad[MAD_LEN];

    cm_msg_encode(&m, mad);
    put_mad(from, mad);
}

/* A message of which a byte of the MAD is changed. */
static inline void say_changed(int from, struct cm_msg m, unsigned at, uint8_t value)
{
    uint8_t mad[MAD_LEN];

    cm_msg_encode(&m, mad);
    mad[at] = value;
    put_mad(from, mad);
}

/* A SEND. sender: its QP, as a comment names it; 0: no comment does. */
static inline void data_of(int from, uint32_t psn, uint32_t sender)
{
    struct pkt p = {.opcode = OP_SEND_ONLY, .dest_qpn = qpn[!from], .psn = psn & PSN_MASK};

    put(from, p, "data", 4, sender);
}

static inline void data(int from)
{
    data_of(from, f.psn[from]++, qpn[from]);
}

/* --- messages ----------------------------------------------------------------------------------------- */

static inline struct cm_msg req(void)
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

static inline struct cm_msg rep(void)
{
    return (struct cm_msg){.transaction_id = TID,
                           .attribute = CM_REP,
                           .rep = {.local_comm_id = comm_id[PASSIVE],
                                   .remote_comm_id = comm_id[ACTIVE],
                                   .local_qpn = qpn[PASSIVE],
                                   .starting_psn = first_psn[ACTIVE]}};
}

/* RTU and DREP; the same members of MRA, REJ, DREQ, LAP and APR. */
static inline struct cm_msg with_ids(int from, uint16_t attribute)
{
    struct cm_msg m = {.transaction_id = TID, .attribute = attribute};

    m.rtu.local_comm_id = comm_id[from];
    m.rtu.remote_comm_id = comm_id[!from];
    return m;
}

static inline struct cm_msg dreq(int from)
{
    struct cm_msg m = with_ids(from, CM_DREQ);

    m.dreq.remote_qpn = qpn[!from];
    return m;
}

static inline struct cm_msg lap(int from)
{
    struct cm_msg m = with_ids(from, CM_LAP);

    m.lap.remote_qpn = qpn[!from];
    return m;
}

static inline struct cm_msg rej(int from, uint8_t answers, uint16_t reason)
{
    struct cm_msg m = with_ids(from, CM_REJ);

    m.rej.answers = answers;
    m.rej.reason = reason;
    return m;
}

static inline struct cm_msg mra(int from, uint8_t answers)
{
    struct cm_msg m = with_ids(from, CM_MRA);

    m.mra.answers = answers;
    return m;
}

static inline struct cm_msg sidr_req(void)
{
    struct cm_msg m = {
        .transaction_id = TID,
        .attribute = CM_SIDR_REQ,
        .sidr_req = {.request_id = 9, .pkey = PKEY_DEFAULT, .service_id = cm_service_id(CM_PS_UDP, 7174)}};
    struct cm_ip_header ip = {.ip_version = 6, .source_port = 45123};

    cm_ip_header_encode(&ip, m.sidr_req.private_data);
    return m;
}

static inline struct cm_msg sidr_rep(void)
{
    return (struct cm_msg){
        .transaction_id = TID,
        .attribute = CM_SIDR_REP,
        .sidr_rep = {.request_id = 9, .qpn = 0x33, .qkey = 0x1234567, .service_id = cm_service_id(CM_PS_UDP, 7174)}};
}

static inline void connect_both(void)
{
    say(ACTIVE, req());
    say(PASSIVE, rep());
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
}

/* --- findings ----------------------------------------------------------------------------------------- */

/* The rules with this severity that were broken, in the order of frames, such as "cm-ids cm-psn". */
static inline const char *rules(const struct lint_result *r, enum lint_severity severity)
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
static inline void judge(const char *errors, const char *notes)
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

#endif
