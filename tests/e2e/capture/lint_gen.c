// SPDX-License-Identifier: BSD-2-Clause
/* Writes captures with exactly one fault, for the test of the linter.
 *   lint_gen --list        a line for each fault: its name, and the rule that it breaks
 *   lint_gen NAME FILE     writes the capture with this fault; NAME good: without a fault
 * All are the same conversation of two QPs: SENDs, WRITEs, READs, atomics, a rendezvous, then the same over XRC. A
 * label names the one packet that is wrong. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/e2e/capture/lint_sacks.h"
#include "tests/e2e/capture/lint_spoil.h"
#include "tests/e2e/capture/scene.h"

#define VA 0x7f0012340000u
#define RKEY 0x1234abcdu
#define MTU SCENE_MTU
#define READ_LEN 700u /* three responses */

/* --- the conversation -------------------------------------------------------------------------- */

static void acknowledge(struct scene *s, const char *label, uint32_t psn)
{
    scene_done(s, B);
    scene_ack(s, label, B, psn, AETH_NO_CREDITS);
}

static void sends(struct scene *s)
{
    scene_send(s, "send", A, NULL, 30);
    scene_send(s, "send.again", A, NULL, 32);
    scene_request(s, "send.first", A, OP_SEND_FIRST, NULL, MTU);
    scene_request(s, "send.middle", A, OP_SEND_MIDDLE, NULL, MTU);
    acknowledge(s, "ack.send.last", scene_request(s, "send.last", A, OP_SEND_LAST, NULL, 17));
}

static void writes(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 2 * MTU + 9}};

    scene_request_of(s, "write.first", A, OP_WRITE_FIRST, p, NULL, MTU);
    scene_request(s, "write.middle", A, OP_WRITE_MIDDLE, NULL, MTU);
    acknowledge(s, "ack.write.last", scene_request(s, "write.last", A, OP_WRITE_LAST, NULL, 9));
    p.reth.length = 20;
    acknowledge(s, "ack.write", scene_request_of(s, "write", A, OP_WRITE_ONLY, p, NULL, 20));
}

static void reads(struct scene *s)
{
    uint32_t psn = scene_read(s, "read.request", A, VA, RKEY, READ_LEN);

    scene_done(s, B);
    scene_read_responses(s, "read", B, psn, READ_LEN);
    psn = scene_read(s, "small.request", A, VA, RKEY, 100);
    scene_done(s, B);
    scene_read_responses(s, "small", B, psn, 100);
}

static void atomics(struct scene *s)
{
    struct pkt p = {.atomic = {VA, RKEY, 5, 7}};
    uint32_t psn = scene_request_of(s, "add", A, OP_FETCH_ADD, p, NULL, 0);

    scene_done(s, B);
    scene_put(s, "ack.add", B,
              (struct pkt){.opcode = s->service | OP_ATOMIC_ACK, .psn = psn, .aeth = {AETH_NO_CREDITS, s->msn[B]}},
              NULL, 0);
}

/* From A; returns its PSN. */
static uint32_t send_fin(struct scene *s, const char *label, struct tmh t, const struct rvh *r)
{
    uint8_t fin[TMH_LEN + RVH_LEN];

    t.opcode = TMH_FIN;
    rvh_encode(r, fin + tmh_encode(&t, fin));
    return scene_request(s, label, A, OP_SEND_ONLY, fin, sizeof(fin));
}

static bool fin_early; /* the second rendezvous' FIN comes before the data */

/* B offers, A reads and finishes. */
static void rendezvous(struct scene *s)
{
    struct tmh t = {TMH_RNDV, {1, 2, 3}, 0xcafe0001, 0x1122334455667788};
    struct rvh r = {VA + 4096, RKEY + 1, READ_LEN};
    uint32_t psn, fin = 0;

    scene_tm(s, "rndv", B, &t, &r, 0);
    psn = scene_read(s, "rndv.read", A, r.va, r.rkey, r.len);
    scene_done(s, B);
    scene_read_responses(s, "rndv.data", B, psn, r.len);
    t.opcode = TMH_FIN;
    scene_tm(s, "fin", A, &t, &r, 0);
    t = (struct tmh){TMH_EAGER, {0}, 0, 99};
    scene_tm(s, "eager", B, &t, NULL, 40);
    t.opcode = TMH_RNDV; /* one more, so that the first shows what these QPs do, whatever happens to this one */
    t.tag++;
    scene_tm(s, "rndv2", B, &t, &r, 0);
    psn = scene_read(s, "rndv2.read", A, r.va, r.rkey, r.len);
    scene_done(s, B);
    if (fin_early)
        fin = send_fin(s, "fin2", t, &r);
    scene_read_responses(s, "rndv2.data", B, psn, r.len);
    if (!fin_early)
        fin = send_fin(s, "fin2", t, &r);
    acknowledge(s, "ack.fin2", fin);
}

/* Two requests offer the same memory. The READ for the first is lost, and its repetition comes behind the READ for the
 * second. */
static void late_read(struct scene *s)
{
    struct rvh r = {VA + 4096, RKEY + 1, READ_LEN};
    struct tmh t[2] = {{TMH_RNDV, {0}, 1, 5}, {TMH_RNDV, {0}, 2, 6}};
    uint32_t first, second, next;

    for (int i = 0; i < 2; i++)
        scene_tm(s, NULL, B, &t[i], &r, 0);
    first = s->psn[A];
    s->psn[A] += (READ_LEN + MTU - 1) / MTU;
    second = scene_read(s, NULL, A, r.va, r.rkey, r.len);
    next = s->psn[A];
    scene_ack(s, NULL, B, first, NAK_PSN_SEQUENCE);
    s->psn[A] = first;
    scene_read(s, NULL, A, r.va, r.rkey, r.len);
    s->psn[A] = next;
    scene_done(s, B);
    scene_read_responses(s, "late", B, first, r.len);
    next = send_fin(s, NULL, t[0], &r); /* before the other data come */
    scene_done(s, B);
    scene_read_responses(s, "late", B, second, r.len);
    acknowledge(s, NULL, next);
    acknowledge(s, NULL, send_fin(s, NULL, t[1], &r));
}

/* A new connection reads in two parts. Its first packet, the READ of the first part, is lost, and repeated later. */
static void lost_first(struct scene *s)
{
    struct rvh r = {VA + 4096, RKEY + 1, READ_LEN};
    struct tmh t = {TMH_RNDV, {0}, 1, 5};
    uint32_t second;

    s->qpn[A] = 0x611;
    s->qpn[B] = 0x612;
    s->psn[A] = s->psn[B] = 1;
    s->msn[A] = s->msn[B] = 0;
    scene_tm(s, NULL, B, &t, &r, 0);
    s->psn[A] = 2;
    second = scene_read(s, NULL, A, r.va + MTU, r.rkey, r.len - MTU);
    scene_ack(s, NULL, B, 1, NAK_PSN_SEQUENCE);
    s->psn[A] = 1;
    scene_read(s, NULL, A, r.va, r.rkey, MTU);
    scene_read(s, NULL, A, r.va + MTU, r.rkey, r.len - MTU);
    scene_done(s, B);
    scene_read_responses(s, "part", B, 1, MTU);
    scene_done(s, B);
    scene_read_responses(s, "part", B, second, r.len - MTU);
    acknowledge(s, NULL, send_fin(s, NULL, t, &r));
}

static void conversation(struct scene *s, void (*more)(struct scene *s))
{
    static const uint8_t nothing[PKT_CNP_LEN];

    sends(s);
    writes(s);
    reads(s);
    atomics(s);
    rendezvous(s);
    scene_put(s, "cnp", B, (struct pkt){.opcode = OP_CNP, .becn = true}, nothing, PKT_CNP_LEN);
    if (more)
        more(s);
    s->service = OP_SERVICE_XRC;
    s->qpn[A] = 0x111;
    s->qpn[B] = 0x222;
    s->srqn = 0x5a5;
    s->msn[A] = s->msn[B] = 0;
    scene_send(s, "xrc.send", A, NULL, 30);
    scene_request(s, "xrc.first", A, OP_SEND_FIRST, NULL, MTU);
    scene_request(s, "xrc.middle", A, OP_SEND_MIDDLE, NULL, MTU);
    acknowledge(s, "xrc.ack", scene_request(s, "xrc.last", A, OP_SEND_LAST, NULL, 17));
    scene_send(s, "xrc.end", A, NULL, 30);
    s->now += 1000000000;
    scene_send(s, "xrc.late", A, NULL, 30);
}

/* --- faults of more than one packet ------------------------------------------------------------ */

static void repeat(struct scene *s)
{
    scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
    s->psn[A]--;
    scene_send(s, NULL, A, NULL, 12);
}

static void repeat_differs(struct scene *s)
{
    scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
    s->psn[A]--;
    scene_send(s, NULL, A, NULL, 16);
}

static void read_repeat_differs(struct scene *s)
{
    uint32_t psn = scene_read(s, NULL, A, VA, RKEY, READ_LEN);
    struct pkt p = {.reth = {VA + 8, RKEY, READ_LEN - MTU}};

    s->psn[A] = psn + 1;
    scene_request_of(s, NULL, A, OP_READ_REQUEST, p, NULL, 0);
    s->psn[A] = psn + 3;
    scene_done(s, B);
    scene_read_responses(s, "again", B, psn, READ_LEN);
}

/* A READ of three packets. The requester has lost the second response, and asks only for that one again. The responder sends
 * the response with the index `repeated`. */
static void ask_for_second(struct scene *s, uint32_t repeated)
{
    uint32_t psn = scene_read(s, NULL, A, VA, RKEY, READ_LEN);

    scene_done(s, B);
    scene_read_responses(s, "whole", B, psn, READ_LEN);
    s->psn[A] = (psn + 1) & PSN_MASK;
    scene_read(s, NULL, A, VA + MTU, RKEY, MTU);
    scene_read_responses(s, "one", B, (psn + repeated) & PSN_MASK, MTU);
    s->psn[A] = (psn + 3) & PSN_MASK;
}

static void read_part(struct scene *s)
{
    ask_for_second(s, 1);
    scene_send(s, NULL, A, NULL, 12);
}

static void read_part_wrong(struct scene *s)
{
    ask_for_second(s, 0);
}

/* The first of three READs is damaged, and the second one comes last. Then the first one is repeated. */
static void read_after_damaged(struct scene *s)
{
    uint32_t psn[3];

    psn[0] = scene_read(s, "damaged.read", A, VA, RKEY, READ_LEN);
    psn[1] = s->psn[A];
    s->psn[A] += (READ_LEN + MTU - 1) / MTU;
    psn[2] = scene_read(s, NULL, A, VA, RKEY, READ_LEN);
    uint32_t next = s->psn[A];
    for (int i = 1; i >= 0; i--) {
        s->psn[A] = psn[i];
        scene_read(s, NULL, A, VA, RKEY, READ_LEN);
    }
    s->psn[A] = next;
    for (int i = 0; i < 3; i++) {
        scene_done(s, B);
        scene_read_responses(s, NULL, B, psn[i], READ_LEN);
    }
}

static void duplicate(struct scene *s)
{
    uint32_t psn = s->psn[A];

    scene_send(s, NULL, A, NULL, 12);
    scene_send(s, NULL, A, NULL, 12);
    s->now += 1000000000;
    s->psn[A] = psn;
    scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
    s->psn[A] = psn + 2;
}

static void ack_after_nak(struct scene *s)
{
    uint32_t psn = scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);

    scene_ack(s, NULL, B, psn, NAK_REMOTE_OPERATION);
    scene_done(s, B);
    scene_ack(s, NULL, B, psn, AETH_NO_CREDITS);
}

static void ack_read(struct scene *s)
{
    uint32_t psn = scene_read(s, NULL, A, VA, RKEY, READ_LEN);

    scene_done(s, B);
    scene_read_responses(s, "named", B, psn, READ_LEN);
    scene_ack(s, NULL, B, psn + 2, AETH_NO_CREDITS);
}

static void ack_atomic(struct scene *s)
{
    struct pkt p = {.atomic = {VA, RKEY, 5, 7}};
    uint32_t psn = scene_request_of(s, NULL, A, OP_CMP_SWAP, p, NULL, 0);

    scene_done(s, B);
    scene_ack(s, NULL, B, psn, AETH_NO_CREDITS);
    scene_put(s, NULL, B,
              (struct pkt){.opcode = s->service | OP_ATOMIC_ACK, .psn = psn, .aeth = {AETH_NO_CREDITS, s->msn[B]}},
              NULL, 0);
}

/* A SEND has no key that could be wrong. */
static void nak_code(struct scene *s)
{
    scene_ack(s, NULL, B, scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12), NAK_REMOTE_ACCESS);
}

static void nak_too_long(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 0x80000001u}};

    scene_ack(s, NULL, B, scene_request_of(s, NULL, A, OP_WRITE_FIRST, p, NULL, MTU), NAK_REMOTE_ACCESS);
}

static void nak_length(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 20}};

    scene_ack(s, NULL, B, scene_request_of(s, NULL, A, OP_WRITE_ONLY, p, NULL, 12), NAK_REMOTE_OPERATION);
}

static void nak_right_code(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 20}};

    scene_ack(s, NULL, B, scene_request_of(s, NULL, A, OP_WRITE_ONLY, p, NULL, 12), NAK_INVALID_REQUEST);
}

static void nak_acked(struct scene *s)
{
    struct pkt p = {.inv_rkey = RKEY};
    uint32_t psn = scene_request_of(s, NULL, A, OP_SEND_ONLY_INV, p, NULL, 12);

    scene_done(s, B);
    scene_ack(s, NULL, B, psn, AETH_NO_CREDITS);
    scene_ack(s, NULL, B, psn, NAK_REMOTE_ACCESS);
}

/* The reader that could have asked again is in ERR. */
static void fatal_reader(struct scene *s)
{
    scene_ack(s, NULL, A, scene_request(s, NULL, B, OP_SEND_ONLY, NULL, 12), NAK_REMOTE_OPERATION);
}

static void ack_back(struct scene *s)
{
    uint32_t psn = s->psn[A];

    scene_send(s, NULL, A, NULL, 12);
    scene_send(s, NULL, A, NULL, 12);
    scene_ack(s, NULL, B, psn, AETH_NO_CREDITS);
}

/* The responder has one receive request, then none. One message without a credit is allowed, a second one is not. */
static void credits(struct scene *s, unsigned beyond)
{
    uint32_t psn = 0;

    s->qpn[A] = 0x344;
    s->qpn[B] = 0x355;
    s->psn[A] = 1;
    s->msn[B] = 0;
    for (unsigned i = 0; i < 2; i++) {
        psn = scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
        scene_done(s, B);
        scene_ack(s, NULL, B, psn, (uint8_t)(1 - i));
    }
    for (unsigned i = 0; i < beyond; i++)
        psn = scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
    for (unsigned i = 0; i < beyond; i++)
        scene_done(s, B);
    scene_ack(s, NULL, B, psn, 3);
    for (unsigned i = 0; i < 3; i++)
        scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
}

static void credit(struct scene *s)
{
    credits(s, 2);
}

static void credit_kept(struct scene *s)
{
    credits(s, 1);
}

static void rnr(struct scene *s)
{
    scene_ack(s, NULL, B, scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12), AETH_RNR | 3);
    s->psn[A]--;
    scene_send(s, NULL, A, NULL, 12);
}

static void lost(struct scene *s)
{
    uint32_t psn = s->psn[A]++;

    scene_ack(s, NULL, B, scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12) - 1, NAK_PSN_SEQUENCE);
    s->psn[A] = psn;
    scene_send(s, NULL, A, NULL, 13);
    scene_send(s, NULL, A, NULL, 12);
}

static void new_connection(struct scene *s)
{
    s->psn[A] += 1000000;
    s->msn[B] = 0;
    scene_send(s, NULL, A, NULL, 12);
}

/* Both QPs were reset and connected again, with the PSNs of before. */
static void begins_again(struct scene *s)
{
    s->qpn[A] = 0x311;
    s->qpn[B] = 0x322;
    for (unsigned i = 0; i < 2; i++) {
        s->psn[A] = 1;
        s->msn[B] = 0;
        scene_send(s, NULL, A, NULL, 12 + i);
        scene_send(s, NULL, A, NULL, 30);
        scene_send(s, NULL, A, NULL, 40 - i);
    }
}

/* Connections between the same addresses that all have the same PSNs: of one the requests, but few answers, of the next
 * READs, and more answers than that. */
static void same_psns(struct scene *s)
{
    for (unsigned i = 0; i < 10; i++) {
        uint32_t psn = 0;

        s->qpn[A] = 0x411 + i;
        s->qpn[B] = 0x522 + i * 7 % 10; /* in another order */
        s->psn[A] = 1;
        s->msn[B] = 0;
        for (unsigned k = 0; k < 40 && i % 2 == 0; k++) {
            psn = scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
            scene_done(s, B);
        }
        if (psn)
            scene_ack(s, NULL, B, psn, AETH_NO_CREDITS);
        for (unsigned k = 0; k < 13 && i % 2 != 0; k++) {
            psn = scene_read(s, NULL, A, VA, RKEY, READ_LEN);
            scene_done(s, B);
            scene_read_responses(s, "same", B, psn, READ_LEN);
        }
    }
}

static void unpaired(struct scene *s)
{
    s->qpn[A] = 0x333;
    scene_ack(s, NULL, B, 17, AETH_NO_CREDITS);
}

static void midway(struct scene *s)
{
    s->qpn[B] = 0x334;
    scene_request(s, NULL, A, OP_SEND_LAST, NULL, 12);
}

static const struct fault {
    const char *name, *rule;
    const char *label; /* packet to be spoilt, and how; or NULL */
    void (*spoil)(struct scene_draft *d);
    int seen; /* see struct scene */
    void (*more)(struct scene *s); /* what comes on top */
} faults[] = {
    {"icrc", "icrc", "send", flip_icrc, NOWHERE, NULL},
    {"tver", "bth-tver", "send", tver, NOWHERE, NULL},
    {"opcode", "bth-opcode", "cnp", no_such_opcode, NOWHERE, NULL},
    {"pkey", "bth-pkey", "send", pkey, NOWHERE, NULL},
    {"pad", "pad", "send", pad_byte, NOWHERE, NULL},
    {"short", "short", "add", cut_headers, NOWHERE, NULL},
    {"length-read", "length", "read.request", pad_in_read, NOWHERE, NULL},
    {"length-first", "length", "send.first", shorter, NOWHERE, NULL},
    {"mtu-first", "mtu", "send.first", half_mtu, NOWHERE, NULL},
    {"mtu-middle", "mtu", "send.middle", half_mtu, NOWHERE, NULL},
    {"mtu-only", "mtu", "send", big, NOWHERE, NULL},
    {"cnp-becn", "cnp", "cnp", no_becn, NOWHERE, NULL},
    {"cnp-content", "cnp", "cnp", cnp_content, NOWHERE, NULL},
    {"syndrome-reserved", "syndrome", "ack.send.again", syndrome_reserved, NOWHERE, NULL},
    {"syndrome-read", "syndrome", "only.small", syndrome_nak, NOWHERE, NULL},
    {"gap", "psn-gap", "send.middle", leave_out, AT_A, NULL},
    {"gap-first", "psn-gap", "send.first", leave_out, AT_A, NULL},
    {"unseen", "ack-unseen", "send.middle", leave_out, NOWHERE, NULL},
    {"sequence-kind", "opcode-sequence", "send.middle", to_write, NOWHERE, NULL},
    {"sequence-only", "opcode-sequence", "send.last", to_only, NOWHERE, NULL},
    {"srqn", "xrc-srqn", "xrc.last", srqn, NOWHERE, NULL},
    {"xrceth", "xrceth", "xrc.send", no_xrceth, NOWHERE, NULL},
    {"write-length", "write-length", "write.first", reth_length, NOWHERE, NULL},
    {"write-only-length", "write-length", "write", reth_length, NOWHERE, NULL},
    {"write-last", "write-length", "write.last", longer, NOWHERE, NULL},
    {"unsent", "ack-unsent", "ack.send", future, NOWHERE, NULL},
    {"msn-more", "msn", "ack.write", msn_more, NOWHERE, NULL},
    {"msn-less", "msn", "ack.write", msn_less, NOWHERE, NULL},
    {"kind-atomic", "response-kind", "ack.write", to_atomic_ack, NOWHERE, NULL},
    {"kind-read", "response-kind", "ack.write", to_read_response, NOWHERE, NULL},
    {"read-sequence-first", "read-sequence", "first.read", to_middle, NOWHERE, NULL},
    {"read-sequence-last", "read-sequence", "last.read", to_response_only, NOWHERE, NULL},
    {"read-missing", "read-unanswered", "middle.read", leave_out, NOWHERE, NULL},
    {"read-missing-fatal", "none", "middle.read", leave_out, NOWHERE, fatal_reader},
    {"read-skipped", "read-sequence", "middle.read", leave_out, AT_B, NULL},
    {"atomic-skipped", "atomic-unanswered", "ack.add", leave_out, AT_B, NULL},
    {"read-length", "read-length", "only.small", shorter, NOWHERE, NULL},
    {"read-length-last", "read-length", "last.read", longer, NOWHERE, NULL},
    {"atomic-unanswered", "atomic-unanswered", "ack.add", leave_out, NOWHERE, NULL},
    {"tm-rvh", "tm-short", "rndv2", tmh_only, NOWHERE, NULL},
    {"tm-opcode", "tm-opcode", "eager", tmh_opcode, NOWHERE, NULL},
    {"tm-read", "tm-read", "rndv2.read", read_key, NOWHERE, NULL},
    {"tm-fin-tag", "tm-fin-copy", "fin2", tmh_tag, NOWHERE, NULL},
    {"tm-fin-reserved", "tm-fin-copy", "fin2", tmh_reserved, NOWHERE, NULL},
    {"tm-fin-rvh", "tm-fin-copy", "fin2", rvh_len, NOWHERE, NULL},
    {"tm-fin-unasked", "tm-fin-unasked", "eager", to_fin, NOWHERE, NULL},
    {"tm-no-fin", "tm-no-fin", "fin2", to_eager, NOWHERE, NULL},
    {"tm-fin-early", "tm-fin-early", NULL, NULL, NOWHERE, NULL},
    {"repeat", "repeat", NULL, NULL, NOWHERE, repeat},
    {"repeat-differs", "repeat-differs", NULL, NULL, NOWHERE, repeat_differs},
    {"read-repeat-differs", "repeat-differs", NULL, NULL, NOWHERE, read_repeat_differs},
    {"read-part", "read-part", NULL, NULL, NOWHERE, read_part},
    {"read-part-wrong", "read-sequence", NULL, NULL, NOWHERE, read_part_wrong},
    {"read-after-damaged", "icrc", "damaged.read", flip_icrc, AT_B, read_after_damaged},
    {"duplicate", "psn-duplicate", NULL, NULL, AT_A, duplicate},
    {"ack-after-nak", "ack-after-nak", NULL, NULL, NOWHERE, ack_after_nak},
    {"ack-read", "ack-read", NULL, NULL, NOWHERE, ack_read},
    {"ack-atomic", "ack-read", NULL, NULL, NOWHERE, ack_atomic},
    {"nak-code", "nak-code", NULL, NULL, NOWHERE, nak_code},
    {"nak-too-long", "nak-code", NULL, NULL, NOWHERE, nak_too_long},
    {"nak-length", "write-length", NULL, NULL, NOWHERE, nak_length},
    {"nak-right-code", "write-length", NULL, NULL, NOWHERE, nak_right_code},
    {"nak-acked", "nak-acked", NULL, NULL, NOWHERE, nak_acked},
    {"ack-back", "ack-back", NULL, NULL, AT_B, ack_back},
    {"sack", "sack", NULL, NULL, NOWHERE, sack_right},
    {"sack-form", "sack-form", "sack", no_gaps, NOWHERE, sack_right},
    {"sack-order", "sack-form", "sack", gaps_touch, NOWHERE, sack_right},
    {"sack-unsent", "sack-unsent", NULL, NULL, NOWHERE, sack_unsent},
    {"sack-unseen", "sack-unseen", NULL, NULL, NOWHERE, sack_unseen},
    {"sack-back", "sack-back", NULL, NULL, AT_B, sack_back},
    {"sack-alone", "unpaired", NULL, NULL, NOWHERE, sack_alone},
    {"credit", "credit", NULL, NULL, NOWHERE, credit},
    {"credit-kept", "none", NULL, NULL, NOWHERE, credit_kept},
    {"rnr", "nak", NULL, NULL, NOWHERE, rnr},
    {"lost", "psn-lost", NULL, NULL, NOWHERE, lost},
    {"restart", "restart", NULL, NULL, NOWHERE, new_connection},
    {"begins-again", "restart", NULL, NULL, NOWHERE, begins_again},
    {"same-psns", "none", NULL, NULL, NOWHERE, same_psns},
    {"late-read", "psn-lost", NULL, NULL, NOWHERE, late_read},
    {"lost-first", "midway", NULL, NULL, NOWHERE, lost_first},
    {"unpaired", "unpaired", NULL, NULL, NOWHERE, unpaired},
    {"midway", "midway", NULL, NULL, NOWHERE, midway},
};
#define NUM_FAULTS (sizeof(faults) / sizeof(faults[0]))

static int generate(const struct fault *f, const char *path)
{
    static struct scene s;
    int err = scene_open(&s, path);

    if (err)
        return err;
    s.spoil = f ? f->label : NULL;
    s.spoiler = f ? f->spoil : NULL;
    s.seen = f ? f->seen : NOWHERE;
    fin_early = f && strcmp(f->name, "tm-fin-early") == 0;
    conversation(&s, f ? f->more : NULL);
    err = scene_close(&s);
    if (!err && s.spoil && s.spoilt != 1) {
        fprintf(stderr, "%s: %u packets are labelled %s\n", f->name, s.spoilt, f->label);
        return -EINVAL;
    }
    return err;
}

int main(int argc, char **argv)
{
    const struct fault *fault = NULL;
    int err;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < NUM_FAULTS; i++)
            printf("%s %s\n", faults[i].name, faults[i].rule);
        return 0;
    }
    for (size_t i = 0; argc == 3 && i < NUM_FAULTS; i++)
        if (strcmp(faults[i].name, argv[1]) == 0)
            fault = &faults[i];
    if (argc != 3 || (!fault && strcmp(argv[1], "good") != 0)) {
        fprintf(stderr, "usage: %s NAME FILE.pcapng | --list\n", argv[0]);
        return 2;
    }
    err = generate(fault, argv[2]);
    if (err)
        fprintf(stderr, "%s: %s\n", argv[2], strerror(-err));
    return err ? 1 : 0;
}
