// SPDX-License-Identifier: BSD-2-Clause
/* The linter's rules about the order of messages of connection management, their repetitions, and the data of a connection. */
#include "tests/unit/pcap/lint_cm_fixture.h"

TestSuite(lint_cm_order, .init = begin);

/* --- order -------------------------------------------------------------------------------------------------- */

Test(lint_cm_order, answers_without_a_request)
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
Test(lint_cm_order, answers_in_an_incomplete_capture)
{
    f.options.incomplete = true;
    say(ACTIVE, req());
    say(ACTIVE, with_ids(ACTIVE, CM_RTU));
    judge("", "cm-unasked");
}

/* At the beginning of a capture, the request may be older. Minutes later it can't. */
Test(lint_cm_order, answers_of_unknown_connections)
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

Test(lint_cm_order, ids)
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

Test(lint_cm_order, refused)
{
    say(ACTIVE, req());
    struct cm_msg m = rej(PASSIVE, CM_ANSWERS_REQ, CM_REJ_INVALID_SERVICE_ID);
    m.rej.local_comm_id = 0; /* it has no number for what it refuses */
    say(PASSIVE, m);
    judge("", "cm-rej");
}

/* --- repetitions -------------------------------------------------------------------------------------------- */

Test(lint_cm_order, a_message_again)
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
Test(lint_cm_order, copies_are_no_repetitions)
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

Test(lint_cm_order, repetitions_that_come_early_or_too_often)
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

Test(lint_cm_order, first_psn)
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

Test(lint_cm_order, qp_of_the_sender)
{
    connect_both();
    data_of(ACTIVE, first_psn[ACTIVE], 0x77);
    judge("cm-qpn", "");
}

Test(lint_cm_order, the_passive_side_waits_for_the_rtu)
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

Test(lint_cm_order, no_data_after_dreq_and_drep)
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
