// SPDX-License-Identifier: BSD-2-Clause
/* The linter's rules about single messages of connection management, and captures that break no rule. */
#include "tests/unit/pcap/lint_cm_fixture.h"

TestSuite(lint_cm, .init = begin);

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
