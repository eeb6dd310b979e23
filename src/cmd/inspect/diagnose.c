// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/diagnose.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/common/json_member.h"
#include "src/cmd/inspect/diagnose_cm.h"

#define TEXT_MAX 600
#define RNR_RETRY_UNLIMITED 7

struct reasons {
    const struct diagnose_input *s;
    json_t *list; /* the result */
};

static void add(struct reasons *r, const char *code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void add(struct reasons *r, const char *code, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    json_array_append_new(r->list, json_pack("{s:s, s:s}", "code", code, "text", text));
}

/* Writes a time as "850 us", "12 ms" or "3.4 s". Returns out. */
static const char *format_time(double us, char out[32])
{
    if (us < 1000)
        snprintf(out, 32, "%.0f us", us);
    else if (us < 1e6)
        snprintf(out, 32, "%.3g ms", us / 1e3);
    else
        snprintf(out, 32, "%.3g s", us / 1e6);
    return out;
}

/* --- states ------------------------------------------------------------------------------------ */

/* Returns what the user can do about an error, by its cause. */
static const char *advice_for(const json_t *failure)
{
    static const struct {
        const char *cause, *text;
    } table[] = {
        {"peer_nak",
         "The peer's log (pumice run --keep-logs) and `pumice why` for the peer give the reason. Most often the rkey "
         "does not exist or does not allow this access, or the range exceeds the region."},
        {"retry", "Check that the peer is running and its queue pair is in RTS. `pumice ping ADDRESS` shows whether "
                  "small and large packets reach the peer."},
        {"rnr_retry", "The peer must post receive requests before messages arrive, or rnr_retry must be 7 (no limit)."},
        {"local", "An lkey, address or length of the request does not fit the memory region, or a memory window does "
                  "not exist."},
        {"refused", "The peer requested an access that this program does not allow. Compare the key and the address "
                    "with the registered regions, and check the access flags of the region and the queue pair."},
        {"recv", "Post receive requests that are as long as the longest message, in registered memory with local write "
                 "access."},
        {"memory", "The program unmapped or freed memory that is still registered."},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (member_is(failure, "cause", table[i].cause))
            return table[i].text;
    }
    return "To use the queue pair again, modify it to RESET and connect it again.";
}

/* The completion queue in the member `which` ("send_cq" or "recv_cq"); NULL: none. */
static const json_t *find_cq(const struct diagnose_input *s, const char *which)
{
    const json_t *cq;
    size_t i;

    if (!json_is_integer(json_object_get(s->qp, which)))
        return NULL;
    json_array_foreach (json_object_get(s->device, "cqs"), i, cq) {
        if (member_whole(cq, "cq") == member_whole(s->qp, which) &&
            member_whole(cq, "session") == member_whole(s->qp, "session"))
            return cq;
    }
    return NULL;
}

/* Returns true if the completion queue overran. */
static bool explain_overrun(struct reasons *r, const char *which)
{
    const json_t *cq = find_cq(r->s, which);

    if (!cq || !member_true(cq, "overrun"))
        return false;
    add(r, "overrun",
        "Its completion queue %lld overran: it has %lld entries, and more completions came before its program polled "
        "them. These completions are lost.",
        member_whole(cq, "cq"), member_whole(cq, "entries"));
    return true;
}

/* Adds what connection management does for this queue pair, if its program connects it by rdma_cm. */
static void explain_cm(struct reasons *r)
{
    const json_t *list = json_object_get(json_object_get(r->s->status, "cm"), "connections"), *id;
    char text[CM_REASON_MAX];
    size_t i;

    json_array_foreach (list, i, id) {
        if (member_whole(id, "qpn") != member_whole(r->s->qp, "qpn") ||
            !member_is(id, "device", member_text(r->s->device, "name")))
            continue;
        diagnose_connection(id, r->s->hosts, text);
        add(r, "cm", "Its program connects it by rdma_cm (ID %lld, %s). %s", member_whole(id, "id"),
            member_text(id, "state"), text);
    }
}

/* Adds the reasons that follow from the state. Returns true if no other reasons are needed. */
static bool explain_state(struct reasons *r)
{
    const json_t *qp = r->s->qp, *failure = json_object_get(qp, "failure");
    const char *state = member_text(qp, "state");
    bool known = json_is_string(json_object_get(qp, "broken"));

    if (known)
        add(r, "broken", "Its program wrote invalid data into its rings (%s), so the daemon stopped reading them.",
            member_text(qp, "broken"));
    if (json_is_string(json_object_get(qp, "unreachable"))) {
        add(r, "unreachable",
            "The connectivity check of its peer %s failed, so the daemon moved it to ERR (pumiced --connectivity "
            "enforce): %s.",
            member_text(qp, "dgid"), member_text(qp, "unreachable"));
        known = true;
    }
    known |= explain_overrun(r, "send_cq");
    if (member_whole(qp, "recv_cq") != member_whole(qp, "send_cq"))
        known |= explain_overrun(r, "recv_cq");
    if (strcmp(state, "ERR") == 0 || strcmp(state, "SQE") == 0) {
        /* The daemon moved the QP to ERR for a reason above. The failure then says that the program asked for ERR,
         * which is wrong, so it is not shown. */
        if (json_is_object(failure) && !(known && member_is(failure, "cause", "program")))
            add(r, "error", "It is in %s: %s. %s", state, member_text(failure, "reason"), advice_for(failure));
        else
            add(r, "error", "It is in %s, and all its requests were flushed.", state);
        return true;
    }
    if (strcmp(state, "RESET") == 0 || strcmp(state, "INIT") == 0) {
        add(r, "not_connected",
            "It is in %s: its program has not connected it yet (modify_qp to RTR and RTS), so it can't send or "
            "receive.",
            state);
        explain_cm(r);
        return true;
    }
    if (strcmp(state, "RTR") == 0)
        add(r, "not_connected", "It is in RTR: it receives, but can't send until its program moves it to RTS.");
    if (strcmp(state, "SQD") == 0 && member_true(qp, "waiting_drain"))
        add(r, "drain",
            "It is in SQD: it finishes the requests that have begun (%lld in the queue). New requests wait until its "
            "program moves it back to RTS.",
            member_whole(qp, "sq_posted"));
    else if (strcmp(state, "SQD") == 0)
        add(r, "drain", "It is in SQD and drained. Posted requests wait until its program moves it back to RTS.");
    return false;
}

/* --- the peer ---------------------------------------------------------------------------------- */

/* Writes to out the owner of the SRQ that an XRC message waits for. Leaves `out` unchanged if the owner is not
 * known. */
static void write_srq_owner(const struct diagnose_input *s, json_int_t srqn, char out[TEXT_MAX])
{
    const json_t *srq, *session;
    size_t i, k;

    json_array_foreach (json_object_get(s->peer_device, "srqs"), i, srq) {
        if (member_whole(srq, "srqn") != srqn)
            continue;
        json_array_foreach (json_object_get(s->peer_device, "sessions"), k, session) {
            if (member_whole(session, "session") == member_whole(srq, "session"))
                snprintf(out, TEXT_MAX, " of %s (pid %lld)", member_text(session, "comm"),
                         member_whole(session, "pid"));
        }
    }
}

/* True if the peer has no receive request for a message; the reason is then in out. False if the peer has one, or if
 * the documents do not tell. */
static bool peer_has_no_receive(const struct diagnose_input *s, char out[TEXT_MAX])
{
    const json_t *srq, *handle = s->peer ? json_object_get(s->peer, "srq") : NULL;
    json_int_t posted;
    size_t i;

    if (!s->peer || member_is(s->peer, "type", "XRC_RECV") || member_whole(s->peer, "rq_posted") ||
        member_whole(s->peer, "rq_ring") > 0)
        return false;
    if (!json_is_integer(handle)) {
        snprintf(out, TEXT_MAX, "%s (pid %lld) has posted none", member_text(s->peer, "comm"),
                 member_whole(s->peer, "pid"));
        return true;
    }
    json_array_foreach (json_object_get(s->peer_device, "srqs"), i, srq) {
        if (member_whole(srq, "srq") != json_integer_value(handle) ||
            member_whole(srq, "session") != member_whole(s->peer, "session"))
            continue;
        posted = member_whole(srq, "posted") + member_whole(srq, "ring");
        snprintf(out, TEXT_MAX, "its shared receive queue %lld, used by %lld queue pairs, is empty",
                 (long long)json_integer_value(handle), member_whole(srq, "qps"));
        return posted == 0;
    }
    return false;
}

static void explain_peer(struct reasons *r)
{
    const struct diagnose_input *s = r->s;

    if (!s->peer_device || member_is(s->qp, "type", "UD"))
        return;
    if (!s->peer) {
        add(r, "peer_gone", "There is no queue pair 0x%06llx at %s: its program has ended or has destroyed it.",
            member_whole(s->qp, "dest_qpn"), member_text(s->peer_device, "address"));
        return;
    }
    if (!member_is(s->peer, "state", "RTR") && !member_is(s->peer, "state", "RTS") &&
        !member_is(s->peer, "state", "SQD") && !member_is(s->peer, "state", "SQE")) {
        const json_t *failure = json_object_get(s->peer, "failure");

        add(r, "peer_state", "The peer, queue pair 0x%06llx of %s (pid %lld), is in %s and does not answer%s%s.",
            member_whole(s->peer, "qpn"), member_text(s->peer, "comm"), member_whole(s->peer, "pid"),
            member_text(s->peer, "state"), json_is_object(failure) ? ": " : "",
            json_is_object(failure) ? member_text(failure, "reason") : "");
    }
}

/* Adds the reasons on this host that stop packets: a port that is down, injected faults. */
static void explain_network(struct reasons *r)
{
    const struct diagnose_input *s = r->s;

    if (json_is_true(json_object_get(s->device, "link_fault")))
        add(r, "link_down", "An injected fault has taken the link of device %s down.", member_text(s->device, "name"));
    else if (member_is(s->device, "port", "down"))
        add(r, "port_down", "The interface %s of device %s is down.", member_text(s->device, "netdev"),
            member_text(s->device, "name"));
    if (member_text(s->status, "fault_script")[0])
        add(r, "fault_script", "A script injects faults on this host: pumice status --json shows it.");
    if (member_text(s->status, "fault")[0])
        add(r, "faults", "Faults are injected into the packets that this host sends: %s.",
            member_text(s->status, "fault"));
}

/* --- the requester ----------------------------------------------------------------------------- */

/* Adds a reason if an XRC queue pair waits for an SRQ. It sends its messages in order, even if they are for different
 * SRQs. */
static void explain_xrc_rnr(struct reasons *r)
{
    const json_t *qp = r->s->qp;
    json_int_t srqn = member_whole(qp, "waiting_srqn");
    char whose[TEXT_MAX] = "";

    if (!srqn)
        return;
    write_srq_owner(r->s, srqn, whose);
    add(r, "xrc_blocked",
        "It waits for a receive request in SRQ 0x%06llx%s. The requests after this message (%lld) wait too, even if "
        "they are for other SRQs: an XRC queue pair sends all messages in order.",
        (long long)srqn, whose, (long long)(member_whole(qp, "sq_posted") - 1));
}

static void explain_rnr(struct reasons *r)
{
    const json_t *qp = r->s->qp;
    char left[32], tries[64], who[TEXT_MAX] = "";

    if (!member_true(qp, "waiting_rnr"))
        return;
    if (member_whole(qp, "rnr_retry") == RNR_RETRY_UNLIMITED)
        snprintf(tries, sizeof(tries), "The queue pair retries without a limit");
    else
        snprintf(tries, sizeof(tries), "%lld of %lld RNR retries are left", member_whole(qp, "rnr_retries_left"),
                 member_whole(qp, "rnr_retry"));
    peer_has_no_receive(r->s, who);
    add(r, "rnr",
        "The peer has no receive request for PSN %lld (RNR NAK)%s%s. %s; the next try is in %s. %lld requests wait.",
        member_whole(qp, "una_psn"), who[0] ? ": " : "", who, tries, format_time(member_real(qp, "rnr_us"), left),
        member_whole(qp, "sq_posted"));
    explain_xrc_rnr(r);
}

/* Adds a reason if it waits for an end-to-end credit. */
static void explain_credit(struct reasons *r)
{
    const json_t *qp = r->s->qp, *left = json_object_get(qp, "credit_us");
    char when[64] = "", due[32], who[TEXT_MAX] = "";

    if (!member_true(qp, "waiting_credit"))
        return;
    if (json_is_number(left))
        snprintf(when, sizeof(when), " If the peer does not, it tries in %s.",
                 format_time(json_number_value(left), due));
    peer_has_no_receive(r->s, who);
    add(r, "recv_credit",
        "It waits for an end-to-end credit (e2e-credits): the peer has no receive request for its next message%s%s. It "
        "sends the message when the peer posts one.%s %lld requests wait.",
        who[0] ? ": " : "", who, when, member_whole(qp, "sq_posted"));
}

static void explain_ack(struct reasons *r)
{
    const json_t *qp = r->s->qp, *silent = json_object_get(qp, "silent_us");
    json_int_t una = member_whole(qp, "una_psn"), left = member_whole(qp, "retries_left"),
               most = member_whole(qp, "retry_cnt");
    char since[32], due[32], timeout[32], rtt[32];

    if (!json_is_number(silent) || member_true(qp, "waiting_rnr"))
        return;
    add(r, "ack",
        "It waits for an ACK: PSN %lld to %lld are unacknowledged, the oldest for %s (usual round trip %s). The next "
        "check is in %s.%s",
        (long long)una, (long long)((member_whole(qp, "max_psn") - 1) & 0xffffff),
        format_time(json_number_value(silent), since),
        member_real(qp, "srtt_us") > 0 ? format_time(member_real(qp, "srtt_us"), rtt) : "not known yet",
        format_time(member_real(qp, "deadline_us"), due),
        member_true(qp, "probing")
            ? " Nothing was answered in time, so it sends one packet at a time until an answer comes."
        : member_true(qp, "retransmitting") ? " It is retransmitting lost packets."
                                            : "");
    if (left < most && json_is_number(json_object_get(qp, "timeout_us")))
        add(r, "retry",
            "The peer did not answer within %lld timeouts of %s; %lld of %lld retries are left, then it fails with "
            "\"transport retry counter exceeded\".",
            (long long)(most - left), format_time(member_real(qp, "timeout_us"), timeout), (long long)left,
            (long long)most);
    if (!json_is_number(json_object_get(qp, "timeout_us")))
        add(r, "retry", "Its timeout is 0: it waits without a limit.");
}

static void explain_windows(struct reasons *r)
{
    const json_t *qp = r->s->qp;

    if (member_true(qp, "waiting_window"))
        add(r, "window",
            "Its window is full: %lld packets are unacknowledged (at most %lld packets), and %lld of %lld bytes are in "
            "flight. It sends more when an ACK comes.",
            (member_whole(qp, "max_psn") - member_whole(qp, "una_psn")) & 0xffffff,
            member_whole(r->s->device, "window_pkts"), member_whole(qp, "inflight_bytes"),
            member_whole(qp, "window_bytes"));
    long long most = member_whole(r->s->device, "peer_window"), window = member_whole(qp, "window_bytes");
    if (member_true(qp, "waiting_peer"))
        add(r, "peer_window",
            "The window of its destination %s is full (%lld bytes; at most %lld, the size of its socket buffer). All "
            "queue pairs that send there share this window. Lost packets and long round trips make it smaller.",
            member_text(qp, "dgid"), window > 0 ? window : most, most);
    if (member_true(qp, "waiting_reads"))
        add(r, "credit",
            "It has no credit for the next READ or atomic: %lld are outstanding, and max_rd_atomic is %lld.",
            member_whole(qp, "reads_outstanding"), member_whole(qp, "max_rd_atomic"));
    if (member_true(qp, "waiting_fence"))
        add(r, "fence", "The next request has a fence and waits for %lld READs or atomics before it.",
            member_whole(qp, "reads_outstanding"));
    if (json_is_integer(json_object_get(qp, "rate")))
        add(r, "ecn", "Congested routers (ECN) have lowered its rate to %.1f MB/s%s.",
            (double)member_whole(qp, "rate") / 1e6,
            member_true(qp, "waiting_rate") ? ", and it waits until it may send again" : "");
}

/* --- the program ------------------------------------------------------------------------------- */

static void explain_cq(struct reasons *r, const char *which)
{
    const json_t *cq = find_cq(r->s, which);

    if (cq && !member_true(cq, "overrun") && member_whole(cq, "unread") > 0)
        add(r, "unpolled", "Its program has not polled %lld completions of completion queue %lld%s.",
            member_whole(cq, "unread"), member_whole(cq, "cq"),
            member_is(cq, "armed", "no") ? "" : ", although it got an event for them");
}

/* Adds a note if registered memory was unmapped: the program may wonder where its data are. */
static void explain_unmapped(struct reasons *r)
{
    json_int_t n = member_whole(json_object_get(r->s->qp, "counters"), "mem_unmapped");

    if (n > 0)
        add(r, "unmapped",
            "%lld copies met memory that its program had unmapped but not deregistered. The daemon dropped "
            "the data for it, and READs of it returned zeros.",
            (long long)n);
}

static void explain_receive(struct reasons *r)
{
    const json_t *qp = r->s->qp;

    if (member_is(qp, "type", "XRC_SEND") || member_is(qp, "type", "XRC_RECV") ||
        json_is_integer(json_object_get(qp, "srq")))
        return;
    if (member_whole(qp, "rq_max") && member_whole(qp, "rq_posted") == 0 && member_whole(qp, "rq_ring") == 0)
        add(r, "no_receive", "It has no receive request posted: %s.",
            member_is(qp, "type", "RC") ? "it answers a SEND from the peer with an RNR NAK"
                                        : "messages to it are dropped");
}

/* Adds a reason if the peer waits for this queue pair. */
static void explain_waiting_peer(struct reasons *r)
{
    const json_t *peer = r->s->peer;

    if (peer && (member_true(peer, "waiting_rnr") || member_true(peer, "waiting_credit")))
        add(r, "peer_wait",
            "The peer, queue pair 0x%06llx, has a message to send and waits for a receive request here.",
            member_whole(peer, "qpn"));
    else if (peer && json_is_number(json_object_get(peer, "silent_us")))
        add(r, "peer_wait", "The peer, queue pair 0x%06llx, waits for an ACK from here.", member_whole(peer, "qpn"));
}

json_t *diagnose_qp(const struct diagnose_input *s)
{
    struct reasons r = {s, json_array()};

    if (explain_state(&r))
        return r.list;
    explain_rnr(&r);
    explain_credit(&r);
    explain_ack(&r);
    bool asked = json_array_size(r.list) > 0;
    explain_windows(&r);
    if (asked) {
        explain_peer(&r);
        explain_network(&r);
    }
    if (member_whole(s->qp, "sq_ring") > 0)
        add(&r, "unread", "The daemon has not read %lld of its requests yet%s.", member_whole(s->qp, "sq_ring"),
            member_whole(s->qp, "sq_posted") >= member_whole(s->qp, "sq_max")
                ? ", because the send queue of the engine is full"
                : "");
    if (json_array_size(r.list) == 0 && member_whole(s->qp, "sq_posted") > 0)
        add(&r, "ready", "%lld requests are posted, and nothing stops them.", member_whole(s->qp, "sq_posted"));
    if (json_array_size(r.list) == 0)
        add(&r, "idle", "It has nothing to send: all posted requests are complete.");
    explain_receive(&r);
    explain_unmapped(&r);
    explain_waiting_peer(&r);
    explain_cq(&r, "send_cq");
    if (member_whole(s->qp, "recv_cq") != member_whole(s->qp, "send_cq"))
        explain_cq(&r, "recv_cq");
    return r.list;
}
