// SPDX-License-Identifier: BSD-2-Clause
/* pumice why: each reason that it can give, from status documents as the daemon writes them. tests/e2e/cli/why.sh makes
 * real programs wait. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/inspect/diagnose.h"

#define QP                                                                                                             \
    "'qpn': 17, 'session': 1, 'type': 'RC', 'dest_qpn': 18, 'dgid': '::ffff:127.0.0.2', 'send_cq': 1, 'recv_cq': 2"
#define RTS QP ", 'state': 'RTS', 'rq_max': 4, 'rq_posted': 1, 'sq_max': 16"
#define WAITS RTS ", 'sq_posted': 2, 'silent_us': 700.0, 'timeout_us': 4000.0, 'retry_cnt': 7, 'retries_left': 7"
#define PEER "'qpn': 18, 'session': 4, 'pid': 99, 'comm': 'other', 'state': 'RTS'"

/* The known facts, the expected reasons in their order, and a word that one of them must have. Apostrophes stand for
 * quotation marks. */
static const struct known {
    const char *name, *qp, *peer, *device, *status, *codes, *says;
} all[] = {
    {"new", QP ", 'state': 'RESET'", NULL, NULL, NULL, "not_connected", "it can't send or receive"},
    {"INIT", QP ", 'state': 'INIT'", NULL, NULL, NULL, "not_connected", "It is in INIT"},
    {"connecting by rdma_cm", QP ", 'state': 'INIT'", NULL, "'name': 'pumice0'",
     "'cm': {'connections': [{'id': 3, 'qpn': 17, 'device': 'pumice0', 'state': 'ROUTE_RESOLVED'}, {'id': 4, 'qpn': "
     "17, 'device': 'other', 'state': 'IDLE'}]}",
     "not_connected cm",
     "(ID 3, ROUTE_RESOLVED). It is in ROUTE_RESOLVED: it waits until its program calls rdma_connect"},
    {"RTR", QP ", 'state': 'RTR'", NULL, NULL, NULL, "not_connected", "can't send until"},
    {"RTR, and nothing to receive in", QP ", 'state': 'RTR', 'rq_max': 4", NULL, NULL, NULL, "not_connected no_receive",
     "with an RNR NAK"},
    {"failed", QP ", 'state': 'ERR', 'failure': {'cause': 'retry', 'reason': 'all used up'}", NULL, NULL, NULL, "error",
     "all used up. Check that the peer is running"},
    {"an error without a cause", QP ", 'state': 'SQE', 'failure': null", NULL, NULL, NULL, "error", "It is in SQE"},
    {"nonsense in its rings",
     QP ", 'state': 'ERR', 'broken': 'a tail too far', 'failure': {'cause': 'program', 'reason': 'its program'}", NULL,
     NULL, NULL, "broken error", "invalid data into its rings (a tail too far)"},
    {"given up",
     QP ", 'state': 'ERR', 'unreachable': 'nobody is there', 'failure': {'cause': 'program', 'reason': 'its program'}",
     NULL, NULL, NULL, "unreachable error", "to ERR (pumiced --connectivity enforce): nobody is there."},
    {"lost completions", QP ", 'state': 'ERR', 'failure': {'cause': 'program', 'reason': 'its program'}", NULL,
     "'cqs': [{'cq': 1, 'session': 1, 'overrun': true, 'entries': 4, 'unread': 4}]", NULL, "overrun error",
     "it has 4 entries"},
    {"lost completions of receives", RTS, NULL,
     "'cqs': [{'cq': 1, 'session': 1, 'unread': 0}, {'cq': 2, 'session': 1, 'overrun': true, 'entries': 8}]", NULL,
     "overrun", "queue 2 overran"},
    {"another session's completion queue", RTS, NULL, "'cqs': [{'cq': 1, 'session': 2, 'overrun': true}]", NULL, "idle",
     NULL},
    {"drains", RTS ", 'state': 'SQD', 'waiting_drain': true, 'sq_posted': 3", NULL, NULL, NULL, "drain",
     "have begun (3 in the queue)"},
    {"drained", RTS ", 'state': 'SQD'", NULL, NULL, NULL, "drain", "drained"},
    {"RNR", RTS ", 'sq_posted': 1, 'waiting_rnr': true, 'rnr_us': 650000.0, 'rnr_retry': 6, 'rnr_retries_left': 4",
     PEER, NULL, NULL, "rnr", "other (pid 99) has posted none. 4 of 6 RNR retries are left; the next try is in 650 ms"},
    {"RNR for ever", RTS ", 'sq_posted': 1, 'waiting_rnr': true, 'rnr_us': 1.0, 'rnr_retry': 7", NULL, NULL, NULL,
     "rnr", "retries without a limit"},
    {"RNR by an SRQ", RTS ", 'sq_posted': 1, 'waiting_rnr': true, 'rnr_us': 1.0, 'rnr_retry': 7", PEER ", 'srq': 5",
     "'srqs': [{'srq': 5, 'session': 3, 'posted': 1, 'qps': 1}, {'srq': 5, 'session': 4, 'posted': 0, 'ring': 0, "
     "'qps': 9}]",
     NULL, "rnr", "shared receive queue 5, used by 9 queue pairs, is empty"},
    {"RNR by the SRQ of an XRC message",
     RTS
     ", 'type': 'XRC_SEND', 'sq_posted': 5, 'waiting_rnr': true, 'rnr_us': 1.0, 'rnr_retry': 7, 'waiting_srqn': 258",
     PEER ", 'type': 'XRC_RECV'",
     "'srqs': [{'srq': 5, 'session': 3, 'srqn': 258}], 'sessions': [{'session': 3, 'comm': 'slow', 'pid': 77}]", NULL,
     "rnr xrc_blocked", "receive request in SRQ 0x000102 of slow (pid 77). The requests after this message (4) wait"},
    {"RNR, but there is one now", RTS ", 'sq_posted': 1, 'waiting_rnr': true, 'rnr_us': 1.0, 'rnr_retry': 7",
     PEER ", 'rq_posted': 1", NULL, NULL, "rnr", "(RNR NAK). The queue pair retries"},
    {"waits", WAITS ", 'una_psn': 5, 'max_psn': 8", PEER, NULL, NULL, "ack", "PSN 5 to 7 are unacknowledged"},
    {"waits across the end of PSNs", WAITS ", 'una_psn': 16777215, 'max_psn': 0, 'retransmitting': true", PEER, NULL,
     NULL, "ack",
     "PSN 16777215 to 16777215 are unacknowledged, the oldest for 700 us (usual round trip not known yet). The next "
     "check is in 0 us. It is retransmitting"},
    {"retries", WAITS ", 'retries_left': 3", PEER, NULL, NULL, "ack retry",
     "within 4 timeouts of 4 ms; 3 of 7 retries"},
    {"without a timeout", RTS ", 'silent_us': 5.0, 'sq_posted': 1", PEER, NULL, NULL, "ack retry",
     "waits without a limit"},
    {"its peer is gone", WAITS, NULL, "'name': 'pumice0', 'address': '127.0.0.2'", NULL, "ack peer_gone",
     "no queue pair 0x000012 at 127.0.0.2"},
    {"its peer has failed", WAITS, PEER ", 'state': 'ERR', 'failure': {'reason': 'out of luck'}", NULL, NULL,
     "ack peer_state", "does not answer: out of luck"},
    {"no link", WAITS, PEER, "'name': 'pumice0', 'netdev': 'eth7', 'port': 'down'", NULL, "ack port_down",
     "eth7 of device pumice0 is down"},
    {"a fault takes the link down", WAITS, PEER,
     "'name': 'pumice0', 'netdev': 'eth7', 'port': 'down', 'link_fault': true", NULL, "ack link_down",
     "An injected fault has taken the link of device pumice0 down"},
    {"faults", WAITS, PEER, NULL, "'fault': 'loss=3%'", "ack faults", "sends: loss=3%"},
    {"a script", WAITS, PEER, NULL, "'fault_script': 'at 1s: drop'", "ack fault_script", "A script injects faults"},
    {"its window",
     RTS ", 'sq_posted': 1, 'waiting_window': true, 'una_psn': 16777215, 'max_psn': 3, 'inflight_bytes': 100, "
         "'window_bytes': 99",
     PEER, "'window_pkts': 12", NULL, "window",
     "4 packets are unacknowledged (at most 12 packets), and 100 of 99 bytes are in flight"},
    {"the window of all", RTS ", 'sq_posted': 1, 'waiting_peer': true", PEER, "'peer_window': 4321", NULL,
     "peer_window", "::ffff:127.0.0.2 is full (4321 bytes"},
    {"credit", RTS ", 'sq_posted': 1, 'waiting_reads': true, 'reads_outstanding': 4, 'max_rd_atomic': 4", PEER, NULL,
     NULL, "credit", "max_rd_atomic is 4"},
    {"no end-to-end credit",
     RTS ", 'sq_posted': 3, 'waiting_credit': true, 'credits': 0, 'credit_us': 250000.0, 'una_psn': 5", PEER, NULL,
     NULL, "recv_credit",
     "no receive request for its next message: other (pid 99) has posted none. It sends the message when the peer "
     "posts "
     "one. If the peer does not, it tries in 250 ms. 3 requests wait."},
    {"the peer waits for a credit", RTS, PEER ", 'waiting_credit': true", NULL, NULL, "idle peer_wait",
     "waits for a receive request here"},
    {"a fence", RTS ", 'sq_posted': 1, 'waiting_fence': true, 'reads_outstanding': 2", PEER, NULL, NULL, "fence",
     "waits for 2 READs"},
    {"congestion", RTS ", 'sq_posted': 1, 'rate': 2500000", PEER, NULL, NULL, "ecn", "rate to 2.5 MB/s."},
    {"congestion, its turn", RTS ", 'sq_posted': 1, 'rate': 2500000, 'waiting_rate': true", PEER, NULL, NULL, "ecn",
     "waits until it may send again"},
    {"the daemon is late", RTS ", 'sq_ring': 3", PEER, NULL, NULL, "unread", "has not read 3 of its requests yet."},
    {"the engine is full", RTS ", 'sq_ring': 3, 'sq_posted': 16, 'sq_max': 16", PEER, NULL, NULL, "unread",
     "because the send queue of the engine is full"},
    {"nothing in its way", RTS ", 'sq_posted': 2", PEER, NULL, NULL, "ready", "2 requests are posted, and nothing"},
    {"idle", RTS, PEER, NULL, NULL, "idle", "nothing to send"},
    {"nothing to receive in", RTS ", 'rq_posted': 0", PEER, NULL, NULL, "idle no_receive", "RNR"},
    {"memory that was unmapped", RTS ", 'counters': {'mem_unmapped': 3}", PEER, NULL, NULL, "idle unmapped",
     "3 copies met memory that its program had unmapped"},
    {"datagrams", RTS ", 'rq_posted': 0, 'type': 'UD'", NULL, NULL, NULL, "idle no_receive", "are dropped"},
    {"a shared receive queue", RTS ", 'rq_posted': 0, 'srq': 3", PEER, NULL, NULL, "idle", NULL},
    {"an XRC target", RTS ", 'rq_posted': 0, 'type': 'XRC_RECV'", PEER, NULL, NULL, "idle", NULL},
    {"the peer waits for a receive", RTS, PEER ", 'waiting_rnr': true", NULL, NULL, "idle peer_wait",
     "waits for a receive request here"},
    {"the peer waits for an ACK", RTS, PEER ", 'silent_us': 1.0", NULL, NULL, "idle peer_wait", "for an ACK from here"},
    {"a program that does not poll", RTS, PEER, "'cqs': [{'cq': 1, 'session': 1, 'unread': 5, 'armed': 'no'}]", NULL,
     "idle unpolled", "has not polled 5 completions of completion queue 1."},
    {"a program that was told", RTS, PEER, "'cqs': [{'cq': 2, 'session': 1, 'unread': 5, 'armed': 'any'}]", NULL,
     "idle unpolled", "although it got an event"},
};
#define CASES (sizeof(all) / sizeof(all[0]))

/* Later members replace earlier ones of the same name. */
static json_t *document(const char *members)
{
    char text[2048];
    json_error_t err;
    json_t *o;

    if (!members)
        return NULL;
    snprintf(text, sizeof(text), "{%s}", members);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    o = json_loads(text, 0, &err);
    cr_assert_not_null(o, "%s: %s", text, err.text);
    return o;
}

static json_t *reasons_in(const struct known *k)
{
    json_t *qp = document(k->qp), *peer = document(k->peer), *device = document(k->device ? k->device : "");
    json_t *status = document(k->status ? k->status : "");
    struct diagnose_input s = {.status = status, .device = device, .qp = qp, .peer = peer};
    json_t *list;

    s.peer_device = peer || strstr(k->codes, "peer_gone") ? device : NULL;
    list = diagnose_qp(&s);
    json_decref(qp);
    json_decref(peer);
    json_decref(device);
    json_decref(status);
    return list;
}

/* Writes the codes, separated by spaces. */
static void codes_of(const json_t *list, char *out, size_t room)
{
    const json_t *one;
    size_t i, n = 0;

    out[0] = 0;
    json_array_foreach (list, i, one)
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? " " : "", json_string_value(json_object_get(one, "code")));
}

static bool says(const json_t *list, const char *words)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (strstr(json_string_value(json_object_get(one, "text")), words))
            return true;
    return false;
}

Test(diagnose, each_scene_gets_its_reasons)
{
    for (unsigned i = 0; i < CASES; i++) {
        json_t *list = reasons_in(&all[i]);
        char codes[256];

        codes_of(list, codes, sizeof(codes));
        cr_expect_str_eq(codes, all[i].codes, "%s: %s, not %s", all[i].name, codes, all[i].codes);
        cr_expect(!all[i].says || says(list, all[i].says), "%s: no \"%s\"", all[i].name, all[i].says);
        json_decref(list);
    }
}

Test(diagnose, a_broken_ring_is_not_reported_as_a_request_of_the_program)
{
    for (unsigned i = 0; i < CASES; i++) {
        json_t *list = reasons_in(&all[i]);

        if (strstr(all[i].codes, "broken") || strstr(all[i].codes, "unreachable") || strstr(all[i].codes, "overrun"))
            cr_expect_not(says(list, "failed: its program"), "%s", all[i].name);
        json_decref(list);
    }
}

/* There is advice for each cause of a failure that a daemon reports. */
Test(diagnose, advice_for_each_cause)
{
    static const char *const causes[] = {"peer_nak", "retry", "rnr_retry", "local", "refused", "recv", "memory"};

    for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        char qp[512];
        struct known k = {.name = causes[i], .qp = qp, .codes = "error"};
        json_t *list;

        snprintf(qp, sizeof(qp), QP ", 'state': 'ERR', 'failure': {'cause': '%s', 'reason': 'R'}", causes[i]);
        list = reasons_in(&k);
        cr_expect_not(says(list, "modify it to RESET"), "no advice for %s", causes[i]);
        json_decref(list);
    }
}

/* The cases above cover all codes in the list of the header, which top and the man pages use. */
Test(diagnose, every_code_has_a_case)
{
    static const char *const codes[] = {"error",      "unreachable", "xrc_blocked", "broken",    "not_connected",
                                        "drain",      "rnr",         "ack",         "retry",     "peer_gone",
                                        "peer_state", "peer_wait",   "port_down",   "link_down", "fault_script",
                                        "faults",     "window",      "peer_window", "credit",    "recv_credit",
                                        "fence",      "ecn",         "unread",      "ready",     "idle",
                                        "no_receive", "unpolled",    "overrun",     "cm"};

    for (unsigned c = 0; c < sizeof(codes) / sizeof(codes[0]); c++) {
        bool found = false;

        for (unsigned i = 0; i < CASES && !found; i++) {
            char padded[256], word[32];

            snprintf(padded, sizeof(padded), " %s ", all[i].codes);
            snprintf(word, sizeof(word), " %s ", codes[c]);
            found = strstr(padded, word) != NULL;
        }
        cr_expect(found, "%s", codes[c]);
    }
}
