// SPDX-License-Identifier: BSD-2-Clause
/* Random histories of tag matching, packet by packet, through QPs: messages of one and of several packets, packets that
 * are lost and that come twice, RNRs, rendezvous, QPs that die and come back, and operations on the list. Every
 * decision, every completion and their order are what the reference foretells. A failure prints the history and what
 * repeats it:
 *
 *     TM_SEED=n TM_COUNT=1 build/tests/unit/test_tm_packets --filter 'tm_packets/histories'
 *
 * TM_COUNT is the number of histories (100000 if it is not given). */
#include "tests/unit/core/tm_engine.h"
#include "tests/unit/core/tm_history.h"

#define ENTRY_LEN 512u
#define MTU 256u

/* A message on its way to a QP. */
struct flight {
    bool chosen; /* it is to be sent, or is being sent */
    uint8_t opcode; /* enum tmh_op */
    uint64_t tag;
    uint32_t packets, at; /* number of packets, and index of the next one */
    uint32_t data; /* rendezvous: bytes to READ */
    uint32_t slot; /* slot of the entry that it matched; NO_SLOT: none */
    bool counts; /* it is unexpected */
};
static struct flight flight[TM_QPS];
static uint32_t buffers; /* posted untagged buffers */
static uint64_t losses, twice, rnrs, deaths, matches, reads;

/* --- completions */

static void must_complete(struct history *h, uint8_t of, uint8_t status, uint8_t opcode, uint8_t flags)
{
    if (!engine_peek_completion(fix.e)) {
        differ(h, "there is no completion");
        return;
    }
    struct completion c = fix_take(&fix);
    SAME(h, "kind", c.of, of);
    SAME(h, "status", c.status, status);
    SAME(h, "opcode", c.opcode, opcode);
    SAME(h, "flags", c.flags, flags);
}
static void entry_completes(struct history *h, uint32_t slot, uint8_t status, uint8_t flags)
{
    const struct completion *c = engine_peek_completion(fix.e);
    if (c)
        SAME(h, "entry", c->wr_id, 7000 + slot);
    must_complete(h, OF_TM_ENTRY, status, WC_TM_RECV, flags);
}
static void nothing_completes(struct history *h, const char *when)
{
    if (engine_peek_completion(fix.e))
        differ(h, "a completion, %s", when);
    while (engine_peek_completion(fix.e))
        fix_take(&fix);
}

/* --- operations */

static void operate(struct history *h)
{
    struct tm_op op = {0};
    struct sge sge;
    choose_op(h, &op);
    struct tm_op_result must = foretell_op(h, &op);
    if (op.opcode == TM_ADD) {
        sge = (struct sge){TAG_VA + ENTRY_LEN * (TM_SLOT(op.handle) % 8), ENTRY_LEN, key};
        op.sge = &sge;
        op.num_sge = 1;
        op.recv_wr_id = 7000 + TM_SLOT(op.handle);
    }
    cr_assert_eq(srq_post_op(srq, &op, fix.now), 0);
    if (must.complete)
        must_complete(h, OF_TM_OP, must.status, must.opcode, must.flags);
    nothing_completes(h, "of an operation that is not signaled");
}

/* --- messages */

static void choose(struct history *h, struct flight *f)
{
    static const uint8_t opcodes[] = {TMH_EAGER, TMH_EAGER, TMH_EAGER, TMH_EAGER, TMH_RNDV, TMH_RNDV, TMH_NO_TAG};
    *f = (struct flight){.chosen = true, .slot = NO_SLOT};
    f->opcode = opcodes[below(h, sizeof(opcodes))];
    f->tag = random_tag(h);
    f->packets = f->opcode == TMH_RNDV ? 1 : 1 + below(h, 3);
    f->data = chance(h, 30) ? 0 : 1 + below(h, ENTRY_LEN);
}

/* Sends packet k of the message to QP n with the next PSN. */
static uint8_t transmit(int n, uint32_t k)
{
    const struct flight *f = &flight[n];
    if (f->opcode == TMH_RNDV)
        return rndv(n, f->tag, f->data);
    const uint8_t *m = message(f->opcode, f->tag);
    if (f->packets == 1)
        return arrive(n, OP_SEND_ONLY, m, 40);
    bool last = k + 1 == f->packets;
    return arrive(n, k == 0 ? OP_SEND_FIRST : last ? OP_SEND_LAST : OP_SEND_MIDDLE, m + k * MTU, last ? 16 : MTU);
}

/* Answers the offload's READ, and acknowledges its FIN. */
static void rendezvous(struct history *h, int n)
{
    const struct flight *f = &flight[n];
    if (f->data) {
        const struct pkt *read = sent(OP_READ_REQUEST, 0);
        if (!read || read->reth.length != f->data) {
            differ(h, "there is no READ of %u bytes", f->data);
            return;
        }
        struct pkt copy = *read;
        answer_read(n, &copy);
        entry_completes(h, f->slot, WC_SUCCESS, WC_TM_DATA_VALID);
        reads++;
    }
    const struct pkt *fin = sent(OP_SEND_ONLY, 0);
    struct tmh tmh = {0};
    if (!fin || !tmh_decode(fin->payload, fin->payload_len, &tmh) || tmh.opcode != TMH_FIN || tmh.tag != f->tag)
        differ(h, "there is no FIN");
    else
        answer(n, fin->psn, ACKED);
}

/* Checks the results of a packet that arrived in order. */
static void packet_completes(struct history *h, int n, bool first, bool last)
{
    struct flight *f = &flight[n];
    bool tagged = f->opcode != TMH_NO_TAG;
    if (f->slot != NO_SLOT) {
        bool whole = last && f->opcode == TMH_EAGER && first;
        if (f->opcode == TMH_RNDV)
            entry_completes(h, f->slot, WC_SUCCESS, f->data ? WC_TM_MATCH : BOTH);
        else if (first || last)
            entry_completes(h, f->slot, WC_SUCCESS, whole ? BOTH : first ? WC_TM_MATCH : WC_TM_DATA_VALID);
        if (f->opcode == TMH_RNDV)
            rendezvous(h, n);
    } else if (last) {
        if (f->counts)
            model_end(&h->model, true);
        bool ask = f->counts && (uint16_t)(h->model.hw - h->model.sw) > 16383;
        must_complete(h, tagged ? OF_TM_UNEXPECTED : OF_TM_BUFFER, WC_SUCCESS, tagged ? WC_TM_RECV : WC_TM_NO_TAG,
                      ask ? WC_TM_SYNC_REQ : 0);
    }
    if (last && f->slot != NO_SLOT)
        h->in_use[f->slot] = false;
    nothing_completes(h, "of a packet");
}

/* The device decides about the first packet. False: the packet must be sent again later. */
static bool decide(struct history *h, struct flight *f)
{
    int index = f->opcode == TMH_NO_TAG ? -1 : model_match(&h->model, f->tag);
    if (index < 0 && buffers == 0)
        return false;
    if (index >= 0) {
        f->slot = TM_SLOT(h->model.list[index].handle);
        model_remove(&h->model, index);
        matches++;
        return true;
    }
    buffers--;
    f->counts = f->opcode != TMH_NO_TAG;
    h->model.inflight += f->counts;
    return true;
}

static void packet(struct history *h, int n)
{
    struct flight *f = &flight[n];
    if (!f->chosen)
        choose(h, f);
    bool first = f->at == 0, last = f->at + 1 == f->packets;
    uint32_t is = psn[n];
    note(h, "QP %d: operation %u tag %" PRIx64 ", packet %u of %u\n", n, f->opcode, f->tag, f->at + 1, f->packets);
    if (!last && chance(h, 15)) { /* this packet is lost, and the next one arrives */
        note(h, "  lost\n");
        psn[n]++;
        transmit(n, f->at + 1);
        psn[n] = is;
        nothing_completes(h, "behind a packet that is lost");
        losses++;
        return;
    }
    if (first && !decide(h, f)) {
        note(h, "  no buffer\n");
        uint8_t syndrome = transmit(n, 0);
        SAME(h, "syndrome", syndrome & AETH_KIND_MASK, AETH_RNR);
        nothing_completes(h, "of a message that is put off");
        rnrs++;
        return;
    }
    transmit(n, f->at);
    packet_completes(h, n, first, last);
    if (chance(h, 10)) {
        uint32_t next = psn[n];
        note(h, "  twice\n");
        psn[n] = is;
        transmit(n, f->at);
        psn[n] = next;
        nothing_completes(h, "of a packet that came twice");
        twice++;
    }
    f->at++;
    f->chosen = !last;
}

/* --- QPs that die and come back */

static void die(struct history *h, int n)
{
    struct flight *f = &flight[n];
    note(h, "QP %d dies\n", n);
    cr_assert_eq(fix_modify(qp[n], QPS_ERR), 0);
    turn();
    if (f->chosen && f->at && f->slot != NO_SLOT) {
        entry_completes(h, f->slot, WC_WR_FLUSH_ERR, 0);
        h->in_use[f->slot] = false;
    } else if (f->chosen && f->at) {
        must_complete(h, OF_TM_BUFFER, WC_WR_FLUSH_ERR, WC_RECV, 0);
        if (f->counts)
            model_end(&h->model, false);
    }
    nothing_completes(h, "of a QP that died");
    while (next_event().type)
        ;
    cr_assert_eq(fix_modify(qp[n], QPS_RESET), 0);
    fix_bring(qp[n], QPS_RTS);
    psn[n] = 100;
    *f = (struct flight){0};
    deaths++;
}

/* --- a history */

static void step(struct history *h)
{
    uint32_t what = below(h, 100);
    if (what < 40) {
        operate(h);
    } else if (what < 45 && buffers < 8) {
        post_buffers(1);
        buffers++;
    } else if (what < 47) {
        die(h, (int)below(h, TM_QPS));
    } else {
        packet(h, (int)below(h, TM_QPS));
    }
}

static void run(struct history *h, uint64_t seed)
{
    history_begin(h, seed);
    h->tags = 1 + below(h, MAX_TAGS);
    struct tm_params p = {.max_num_tags = h->tags, .max_ops = 64};
    tm_setup_with(&p, 0);
    h->tm = tm;
    memset(flight, 0, sizeof(flight));
    buffers = below(h, 4);
    post_buffers(buffers);
    uint32_t steps = 10 + below(h, 50);
    for (uint32_t i = 0; i < steps && !h->wrong[0]; i++) {
        step(h);
        compare(h);
    }
    tm_teardown();
}

Test(tm_packets, histories)
{
    uint64_t seed = from_environment("TM_SEED", 1), count = from_environment("TM_COUNT", HISTORIES);
    struct history *h = calloc(1, sizeof(*h));
    for (uint64_t i = 0; i < count; i++) {
        run(h, seed + i);
        if (!h->wrong[0])
            continue;
        h->log = calloc(1, LOG_SIZE);
        run(h, seed + i);
        fprintf(stderr, "%s\nTM_SEED=%" PRIu64 " TM_COUNT=1 repeats it\n", h->log, seed + i);
        cr_assert_fail("%s", h->wrong);
    }
    /* Checks that the histories test something. */
    if (count >= 1000)
        cr_assert(losses > count / 2 && twice > count / 2 && rnrs > count / 2 && deaths > count / 2 &&
                      matches > count && reads > count / 8,
                  "%" PRIu64 " lost, %" PRIu64 " twice, %" PRIu64 " put off, %" PRIu64 " deaths, %" PRIu64
                  " matches, %" PRIu64 " READs",
                  losses, twice, rnrs, deaths, matches, reads);
    free(h);
}
