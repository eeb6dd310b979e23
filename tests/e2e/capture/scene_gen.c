// SPDX-License-Identifier: BSD-2-Clause
/* scene_gen NAME FILE.pcapng: writes the capture of one of the scenes below, for the tests of the Wireshark dissector
 * and of the linter. scene_gen --list prints their names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/e2e/capture/scene.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

#define VA 0x7f0012340000u
#define RKEY 0x1234abcdu
#define LEN 700u /* three responses */

static const struct tmh request = {TMH_RNDV, {0, 0, 0}, 0xcafe0001, 0x1122334455667788};
static const struct rvh where = {VA, RKEY, LEN};

/* A receives by rendezvous what B offers: request, READ, responses, FIN. */
static void rendezvous_from(struct scene *s, int sender, bool fin)
{
    int receiver = !sender;
    struct tmh t = request;
    uint32_t psn;

    scene_tm(s, "rndv", sender, &t, &where, 0);
    psn = scene_read(s, "read", receiver, VA, RKEY, LEN);
    scene_done(s, sender);
    scene_read_responses(s, "read", sender, psn, LEN);
    t.opcode = TMH_FIN;
    if (fin)
        scene_tm(s, "fin", receiver, &t, &where, 0);
}

static void rendezvous(struct scene *s)
{
    rendezvous_from(s, B, true);
}

static void lost_fin(struct scene *s)
{
    rendezvous_from(s, B, false);
}

static void ipv6(struct scene *s)
{
    s->is_v6 = true;
    rendezvous_from(s, A, true);
}

/* EAGER messages on a QP that a rendezvous shows to carry TMHs: of one packet, of three, with immediate data. */
static void eager(struct scene *s)
{
    struct tmh t = {TMH_EAGER, {0, 0, 0}, 7, 0xfeed};
    uint8_t first[SCENE_MTU] = {0};

    rendezvous_from(s, B, true);
    scene_tm(s, "eager", B, &t, NULL, 33);
    t.tag++;
    tmh_encode(&t, first);
    scene_request(s, "eager.first", B, OP_SEND_FIRST, first, SCENE_MTU);
    scene_request(s, "eager.middle", B, OP_SEND_MIDDLE, NULL, SCENE_MTU);
    scene_done(s, A);
    scene_ack(s, "ack.eager.last", A, scene_request(s, "eager.last", B, OP_SEND_LAST, NULL, 10), AETH_NO_CREDITS);
}

/* The rendezvous that shows it comes last. */
static void early(struct scene *s)
{
    struct tmh t = {TMH_EAGER, {0, 0, 0}, 7, 0xfeed};

    scene_tm(s, "eager", B, &t, NULL, 33);
    scene_send(s, "notag", B, NULL, 0);
    scene_request(s, "notag.lost", B, OP_SEND_ONLY, NULL, 4);
    s->psn[B]--;
    scene_send(s, "notag.again", B, NULL, 4);
    rendezvous_from(s, B, true);
}

static void no_tag(struct scene *s)
{
    static const uint8_t message[1] = {TMH_NO_TAG};

    rendezvous_from(s, B, true);
    scene_send(s, "notag", B, message, 1);
    scene_send(s, "empty", B, NULL, 0);
}

/* Every kind of request over XRC. */
static void xrc(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 300}};
    uint32_t psn;

    s->service = OP_SERVICE_XRC;
    s->srqn = 0x5a5;
    scene_send(s, "send", A, NULL, 30);
    scene_request_of(s, "write.first", A, OP_WRITE_FIRST, p, NULL, SCENE_MTU);
    scene_done(s, B);
    scene_ack(s, "ack.write", B, scene_request(s, "write.last", A, OP_WRITE_LAST, NULL, 300 - SCENE_MTU),
              AETH_NO_CREDITS);
    psn = scene_read(s, "read", A, VA, RKEY, LEN);
    scene_done(s, B);
    scene_read_responses(s, "read", B, psn, LEN);
    p.atomic = (struct pkt_atomic){VA, RKEY, 5, 0};
    psn = scene_request_of(s, "add", A, OP_FETCH_ADD, p, NULL, 0);
    scene_done(s, B);
    p = (struct pkt){
        .opcode = s->service | OP_ATOMIC_ACK, .psn = psn, .aeth = {AETH_NO_CREDITS, s->msn[B]}, .atomic_orig = 37};
    scene_put(s, "ack.add", B, p, NULL, 0);
}

static void cnp(struct scene *s)
{
    static const uint8_t nothing[PKT_CNP_LEN];

    scene_send(s, "send", A, NULL, 30);
    scene_put(s, "cnp", B, (struct pkt){.opcode = OP_CNP, .becn = true}, nothing, PKT_CNP_LEN);
}

static void atomic_write(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 8}};
    uint32_t psn = scene_request_of(s, "atomic_write", A, OP_ATOMIC_WRITE, p, NULL, 8);

    scene_done(s, B);
    scene_read_responses(s, "atomic_write", B, psn, 0);
}

static void flush(struct scene *s)
{
    struct pkt p = {.reth = {VA, RKEY, 4096}, .feth = {1, 2}};
    uint32_t psn = scene_request_of(s, "flush", A, OP_FLUSH, p, NULL, 0);

    scene_done(s, B);
    scene_read_responses(s, "flush", B, psn, 0);
}

/* The middle of a SEND is lost, the receiver NAKs, the sender goes back; then an RNR NAK. */
static void retransmission(struct scene *s)
{
    uint32_t first = scene_request(s, "send.first", A, OP_SEND_FIRST, NULL, SCENE_MTU);

    s->psn[A]++; /* what the receiver never saw, and neither did the capture */
    scene_request(s, "send.last", A, OP_SEND_LAST, NULL, 40);
    scene_ack(s, "nak", B, first + 1, NAK_PSN_SEQUENCE);
    s->psn[A] = first + 1;
    scene_request(s, "send.middle", A, OP_SEND_MIDDLE, NULL, SCENE_MTU);
    scene_request(s, "send.again", A, OP_SEND_LAST, NULL, 40);
    scene_done(s, B);
    scene_ack(s, "ack", B, first + 2, AETH_NO_CREDITS);
    scene_ack(s, "rnr", B, scene_request(s, "send.only", A, OP_SEND_ONLY, NULL, 4), AETH_RNR | 12);
    s->psn[A]--;
    scene_send(s, "send.only.again", A, NULL, 4);
}

/* Two packets of a WRITE are lost. The receiver reports them, and the sender sends only these again. */
static void selective(struct scene *s)
{
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN}};
    struct sack report = {.requester = SCENE_QPN_A, .responder = SCENE_QPN_B, .gaps = 2};
    uint8_t payload[SACK_LEN_MOST];
    uint32_t first = scene_request_of(s, "write.first", A, OP_WRITE_FIRST,
                                      (struct pkt){.reth = {VA, RKEY, 5 * SCENE_MTU}}, NULL, SCENE_MTU);

    s->psn[A]++;
    scene_request(s, "write.middle", A, OP_WRITE_MIDDLE, NULL, SCENE_MTU);
    s->psn[A]++;
    scene_request(s, "write.last", A, OP_WRITE_LAST, NULL, SCENE_MTU);
    report.expected = p.psn = first + 1;
    report.end = report.newest = first + 5;
    report.gap[0] = (struct sack_gap){first + 1, first + 2};
    report.gap[1] = (struct sack_gap){first + 3, first + 4};
    sack_encode(&report, payload);
    scene_put(s, "sack", B, p, payload, sack_len(&report));
    s->psn[A] = first + 1;
    scene_request(s, "write.again", A, OP_WRITE_MIDDLE, NULL, SCENE_MTU);
    s->psn[A] = first + 3;
    scene_request(s, "write.again", A, OP_WRITE_MIDDLE, NULL, SCENE_MTU);
    s->psn[A] = first + 5;
    scene_done(s, B);
    scene_ack(s, "ack", B, first + 4, AETH_NO_CREDITS);
}

static void flip(struct scene_draft *d)
{
    d->icrc_flip = 0x10;
}

/* One wrong ICRC among right ones, with an IP ID that is not 0. */
static void icrc(struct scene *s)
{
    s->ip_id = 0xbeef;
    s->spoil = "spoilt";
    s->spoiler = flip;
    scene_send(s, "good", A, NULL, 30);
    scene_request(s, "spoilt", A, OP_SEND_ONLY, NULL, 31);
    s->psn[A]--;
    scene_send(s, "again", A, NULL, 31);
}

static void use(struct scene *s, uint32_t qpn_a, uint32_t qpn_b, uint32_t psn)
{
    s->qpn[A] = qpn_a;
    s->qpn[B] = qpn_b;
    s->psn[A] = psn;
}

/* Two connections of equal PSNs, used at once: only the comments say which answer is to which request. */
static void twins(struct scene *s)
{
    s->noted = true;
    use(s, 0x11, 0x22, 0x100);
    scene_request(s, "send.one", A, OP_SEND_ONLY, NULL, 10);
    use(s, 0x12, 0x23, 0x100);
    scene_request(s, "send.two", A, OP_SEND_ONLY, NULL, 20);
    scene_done(s, B);
    use(s, 0x11, 0x22, 0x101);
    scene_ack(s, "ack.one", B, 0x100, AETH_NO_CREDITS);
    scene_read(s, "read.one", A, VA, RKEY, LEN);
    use(s, 0x12, 0x23, 0x101);
    scene_ack(s, "ack.two", B, 0x100, AETH_NO_CREDITS);
    scene_read(s, "read.two", A, VA, RKEY, SCENE_MTU + 1);
    scene_done(s, B);
    use(s, 0x11, 0x22, 0);
    scene_read_responses(s, "read.one", B, 0x101, LEN);
    use(s, 0x12, 0x23, 0);
    scene_read_responses(s, "read.two", B, 0x101, SCENE_MTU + 1);
}

/* A second connection to the same QP, of another QP and with the same PSNs: it repeats nothing. */
static void reused(struct scene *s)
{
    s->noted = true;
    use(s, 0x11, 0x22, 0x100);
    scene_send(s, "send.one", A, NULL, 10);
    s->msn[B] = 0;
    use(s, 0x12, 0x22, 0x100);
    scene_send(s, "send.two", A, NULL, 20);
}

static const struct {
    const char *name;
    void (*write)(struct scene *s);
} scenes[] = {
    {"rendezvous", rendezvous},
    {"lost_fin", lost_fin},
    {"ipv6", ipv6},
    {"eager", eager},
    {"early", early},
    {"no_tag", no_tag},
    {"xrc", xrc},
    {"cnp", cnp},
    {"atomic_write", atomic_write},
    {"flush", flush},
    {"retransmission", retransmission},
    {"selective", selective},
    {"icrc", icrc},
    {"twins", twins},
    {"reused", reused},
};
#define NUM_SCENES (sizeof(scenes) / sizeof(scenes[0]))

int main(int argc, char **argv)
{
    static struct scene s;
    int err;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < NUM_SCENES; i++)
            puts(scenes[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 3 && i < NUM_SCENES; i++) {
        if (strcmp(scenes[i].name, argv[1]) != 0)
            continue;
        err = scene_open(&s, argv[2]);
        if (!err) {
            scenes[i].write(&s);
            err = scene_close(&s);
        }
        if (err)
            fprintf(stderr, "%s: %s\n", argv[2], strerror(-err));
        return err ? 1 : 0;
    }
    fprintf(stderr, "usage: %s NAME FILE.pcapng | --list\n", argv[0]);
    return 2;
}
