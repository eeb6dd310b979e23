// SPDX-License-Identifier: BSD-2-Clause
/* What the comments of captures say about messages of connection management. */
#include <criterion/criterion.h>
#include <string.h>

#include "pcap/cm_text.h"
#include "pcap/note.h"
#include "wire/cm_msg.h"
#include "wire/gid.h"

static char text[CM_TEXT_MAX];

static void describe(const struct cm_msg *m)
{
    uint8_t mad[MAD_LEN];

    cm_msg_encode(m, mad);
    cm_text(mad, text);
}

static struct cm_msg req(uint8_t ip_version)
{
    struct cm_msg m = {.attribute = CM_REQ,
                       .req = {.local_comm_id = 0x1a2b3c4d,
                               .service_id = cm_service_id(CM_PS_TCP, 7471),
                               .local_qpn = 0x11,
                               .starting_psn = 0xabc,
                               .path_mtu = 5}};
    struct cm_ip_header ip = {.ip_version = ip_version, .source_port = 45123};

    memset(ip.source, 0xfd, sizeof(ip.source));
    if (ip_version == 4)
        gid_from_v4(ip.source, (const uint8_t[]){192, 0, 2, 7});
    cm_ip_header_encode(&ip, m.req.private_data);
    memcpy(m.req.private_data + CM_IP_HEADER_LEN, "hello", 5);
    return m;
}

Test(cm_text, req)
{
    struct cm_msg m = req(4);

    describe(&m);
    cr_expect_str_eq(text, "REQ: service ID 0x0000000001061d2f (TCP port 7471), from 192.0.2.7 port 45123, "
                           "comm ID 0x1a2b3c4d, RC, QP 0x000011, starting PSN 0x000abc, private data 5 bytes");
    m = req(6);
    m.req.transport = CM_TRANSPORT_EXTENDED;
    m.req.extended_transport = CM_EXTENDED_XRC;
    memset(m.req.private_data + CM_IP_HEADER_LEN, 1, CM_REQ_PRIVATE_LEN - CM_IP_HEADER_LEN);
    describe(&m);
    cr_expect_not_null(strstr(text, "from fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd port 45123"), "%s", text);
    cr_expect_not_null(strstr(text, ", XRC, QP 0x000011"), "%s", text);
    cr_expect_not_null(strstr(text, ", private data 56 bytes"), "%s", text);
    m.req.service_id = 0x1234567890; /* not that of an IP port: all private data are the program's */
    m.req.transport = CM_TRANSPORT_UC;
    describe(&m);
    cr_expect_str_eq(text, "REQ: service ID 0x0000001234567890, comm ID 0x1a2b3c4d, UC, QP 0x000011, starting PSN "
                           "0x000abc, private data 92 bytes");
}

Test(cm_text, answers)
{
    static const struct {
        struct cm_msg m;
        const char *text;
    } t[] = {
        {{.attribute = CM_REP,
          .rep = {.local_comm_id = 5, .remote_comm_id = 7, .local_qpn = 0x22, .starting_psn = 1, .private_data = "x"}},
         "REP: comm IDs 0x00000005, 0x00000007, QP 0x000022, starting PSN 0x000001, private data 1 byte"},
        {{.attribute = CM_REP, .rep = {.local_comm_id = 5, .remote_comm_id = 7, .local_eecn = 0x33}},
         "REP: comm IDs 0x00000005, 0x00000007, QP 0x000033, starting PSN 0x000000"},
        {{.attribute = CM_RTU, .rtu = {.local_comm_id = 7, .remote_comm_id = 5}},
         "RTU: comm IDs 0x00000007, 0x00000005"},
        {{.attribute = CM_MRA, .mra = {.local_comm_id = 5, .remote_comm_id = 7, .service_timeout = 24}},
         "MRA of a REQ: comm IDs 0x00000005, 0x00000007, service timeout 68.7 s"},
        {{.attribute = CM_MRA, .mra = {.answers = CM_ANSWERS_OTHER}},
         "MRA of a LAP: comm IDs 0x00000000, 0x00000000, service timeout 4.1e-06 s"},
        {{.attribute = CM_REJ,
          .rej = {.remote_comm_id = 7, .answers = CM_ANSWERS_REQ, .reason = CM_REJ_INVALID_SERVICE_ID}},
         "REJ of a REQ: comm IDs 0x00000000, 0x00000007, reason 8 (invalid service ID)"},
        {{.attribute = CM_REJ, .rej = {.answers = CM_ANSWERS_REP, .reason = CM_REJ_CONSUMER_DEFINED}},
         "REJ of a REP: comm IDs 0x00000000, 0x00000000, reason 28 (rejected by the program)"},
        {{.attribute = CM_REJ, .rej = {.answers = CM_ANSWERS_OTHER, .reason = 34}},
         "REJ: comm IDs 0x00000000, 0x00000000, reason 34 (unknown)"},
        {{.attribute = CM_DREQ, .dreq = {.local_comm_id = 7, .remote_comm_id = 5, .remote_qpn = 0x22}},
         "DREQ: comm IDs 0x00000007, 0x00000005, QP 0x000022 of the receiver"},
        {{.attribute = CM_DREP, .rtu = {.local_comm_id = 5, .remote_comm_id = 7}},
         "DREP: comm IDs 0x00000005, 0x00000007"},
        {{.attribute = CM_SIDR_REP, .sidr_rep = {.request_id = 9, .qpn = 0x44, .qkey = 0x1234567}},
         "SIDR_REP: request ID 0x00000009, status 0 (valid queue pair), QP 0x000044, Q_Key 0x01234567"},
        {{.attribute = CM_SIDR_REP, .sidr_rep = {.request_id = 9, .status = CM_SIDR_UNSUPPORTED}},
         "SIDR_REP: request ID 0x00000009, status 1 (service ID not supported)"},
        {{.attribute = CM_LAP, .lap = {.local_comm_id = 7, .remote_comm_id = 5, .remote_qpn = 0x22}},
         "LAP: comm IDs 0x00000007, 0x00000005, QP 0x000022 of the receiver, alternate path to ::"},
        {{.attribute = CM_APR, .apr = {.local_comm_id = 5, .remote_comm_id = 7, .ap_status = 3}},
         "APR: comm IDs 0x00000005, 0x00000007, status 3"},
    };

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        describe(&t[i].m);
        cr_expect_str_eq(text, t[i].text);
    }
    struct cm_msg m = {.attribute = CM_SIDR_REQ,
                       .sidr_req = {.request_id = 9, .service_id = cm_service_id(CM_PS_UDP, 7174)}};
    m.sidr_req.private_data[0] = 0x99; /* no IP header of this version */
    describe(&m);
    cr_expect_str_eq(text, "SIDR_REQ: service ID 0x0000000001111c06 (UDP port 7174), request ID 0x00000009, private "
                           "data 1 byte");
}

Test(cm_text, other_mads)
{
    uint8_t mad[MAD_LEN] = {1, 3, 2, 1, [16] = 0, 0x35};

    cm_text(mad, text);
    cr_expect_str_eq(text, "MAD of class 0x03, version 2, method 0x01, attribute 0x0035");
}

/* All bits set: no text is cut off, in the comment neither. */
Test(cm_text, the_longest)
{
    uint8_t mad[MAD_LEN];
    char comment[NOTE_MAX];
    struct note n = {.qpn = 0xffffff,
                     .pid = UINT32_MAX,
                     .comm = "sixteen letters!",
                     .has_wr = true,
                     .wr_id = UINT64_MAX,
                     .retransmit = true,
                     .inside = true,
                     .before = true,
                     .mad = mad},
                got;

    for (uint16_t a = CM_REQ; a <= CM_APR; a++) {
        struct cm_msg m;

        memset(&m, 0xff, sizeof(m));
        m.attribute = a;
        if (a == CM_REQ || a == CM_SIDR_REQ) {
            struct cm_msg valid = req(6);
            uint8_t *p = a == CM_REQ ? m.req.private_data : m.sidr_req.private_data;

            memcpy(p, valid.req.private_data, CM_IP_HEADER_LEN);
            *(a == CM_REQ ? &m.req.service_id : &m.sidr_req.service_id) = cm_service_id(CM_PS_IPOIB, UINT16_MAX);
        } else if (a == CM_SIDR_REP) {
            m.sidr_rep.status = CM_SIDR_SUCCESS;
        }
        cm_msg_encode(&m, mad);
        cm_text(mad, text);
        cr_expect_lt(strlen(text), CM_TEXT_MAX - 1, "%s", text);
        note_format(&n, comment);
        cr_expect_not_null(strstr(comment, text), "%s", comment);
        cr_expect_not_null(strstr(comment, "before faults"), "%s", comment);
        cr_assert(note_parse(comment, strlen(comment), &got));
        cr_expect(got.qpn == n.qpn && got.wr_id == n.wr_id && got.retransmit && got.inside && got.before);
    }
}
