// SPDX-License-Identifier: BSD-2-Clause
/* The responder of an RC QP, packet by packet: PSNs and MSNs, one NAK for each gap, and requests that come twice or
 * much too late. The program is the requester. */
#include "tests/verbs/wire/wire_host.h"

#define FIRST 0xfffffeu /* so the PSNs wrap after two packets */
#define LONG (2 * WIRE_MTU + 100) /* bytes of a message of three packets */

static struct vt_end e;
static struct wire_host w;
static uint32_t psn, msn; /* of the next request, of the last answer */
static uint8_t data[LONG];

static struct pkt write_at(uint8_t op, uint32_t at, uint32_t len)
{
    return (struct pkt){.opcode = op, .psn = psn, .reth = {(uintptr_t)e.buf + at, e.mr->rkey, len}};
}

static void fill(uint8_t seed)
{
    for (unsigned i = 0; i < LONG; i++)
        data[i] = (uint8_t)(i * 7 + seed);
}

static bool received(uint64_t id)
{
    struct ibv_wc wc = vt_next(e.rcq);
    return wc.status == IBV_WC_SUCCESS && wc.wr_id == id;
}

static void counts(void)
{
    bool right = true;
    for (unsigned i = 0; i < 5; i++) {
        need(vt_end_recv(&e, i, 0, 64) == 0);
        wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn}, "message", 8);
        right &= wire_answer(&w, AETH_ACK, psn, ++msn) && received(i);
        psn++;
    }
    ok(right, "each SEND has its PSN and its MSN in the ACK, also behind PSN 0xffffff");
    fill(1);
    wire_send(&w, write_at(OP_WRITE_FIRST, 0, LONG), data, WIRE_MTU);
    ok(wire_answer(&w, AETH_ACK, psn, msn), "the first packet of a message does not count in the MSN");
    wire_send(&w, (struct pkt){.opcode = OP_WRITE_MIDDLE, .psn = ++psn}, data + WIRE_MTU, WIRE_MTU);
    need(wire_answer(&w, AETH_ACK, psn, msn));
    wire_send(&w, (struct pkt){.opcode = OP_WRITE_LAST, .psn = ++psn}, data + 2 * WIRE_MTU, 100);
    ok(wire_answer(&w, AETH_ACK, psn++, ++msn) && !memcmp(e.buf, data, LONG),
       "the last one does, and all bytes are there");
}

/* Packets behind a gap are dropped. The first of them gets a NAK that names the missing packet. */
static void gap(const char *what)
{
    memset(e.buf, 0, 64);
    need(vt_end_recv(&e, 1, 0, 64) == 0 && vt_end_recv(&e, 2, 0, 64) == 0);
    for (uint32_t i = 1; i < 5; i++)
        wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn + i}, "behind", 7);
    ok(wire_answer(&w, NAK_PSN_SEQUENCE, psn, msn) && wire_quiet(&w) && vt_quiet(e.rcq), what);
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn}, "missing", 8);
    need(wire_answer(&w, AETH_ACK, psn++, ++msn) && received(1));
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn}, "behind", 7);
    need(wire_answer(&w, AETH_ACK, psn++, ++msn) && received(2));
}

/* The responder acknowledges a repeated request again, with its current MSN. It does not execute the request again. */
static void duplicates(void)
{
    memset(e.buf, 0, 256);
    need(vt_end_recv(&e, 1, 0, 64) == 0 && vt_end_recv(&e, 2, 64, 64) == 0);
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn}, "first", 6);
    need(wire_answer(&w, AETH_ACK, psn, ++msn) && received(1));
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn}, "other", 6);
    ok(wire_answer(&w, AETH_ACK, psn, msn) && vt_quiet(e.rcq) && !strcmp(e.buf, "first") && e.buf[64] == 0,
       "a SEND that comes twice is acknowledged twice, and received once");
    psn++;
    wire_send(&w, write_at(OP_WRITE_ONLY, 128, 8), "written", 8);
    need(wire_answer(&w, AETH_ACK, psn, ++msn));
    strcpy(e.buf + 128, "changed");
    wire_send(&w, write_at(OP_WRITE_ONLY, 128, 8), "written", 8);
    ok(wire_answer(&w, AETH_ACK, psn, msn) && !strcmp(e.buf + 128, "changed"),
       "a WRITE that comes twice is carried out once");
    psn++;
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn - 5}, "old", 4);
    ok(wire_answer(&w, AETH_ACK, psn - 1, msn) && vt_quiet(e.rcq),
       "an older one is acknowledged up to the newest packet");
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn}, "second", 7);
    need(wire_answer(&w, AETH_ACK, psn++, ++msn));
    ok(received(2) && !strcmp(e.buf + 64, "second"), "the next new one is received");
}

/* The atomic gets its saved result. */
static void atomics(void)
{
    uint64_t *cell = (void *)(e.buf + 256);
    struct pkt add = {.opcode = OP_FETCH_ADD,
                      .psn = psn,
                      .atomic = {.va = (uintptr_t)cell, .rkey = e.mr->rkey, .swap_add = 5}},
               p;
    *cell = 37;
    wire_send(&w, add, NULL, 0);
    p = wire_next(&w);
    ok(p.opcode == OP_ATOMIC_ACK && p.psn == (psn & PSN_MASK) && p.aeth.msn == (++msn & PSN_MASK) &&
           p.atomic_orig == 37 && *cell == 42,
       "an atomic: its result and its MSN");
    *cell = 1000;
    wire_send(&w, add, NULL, 0);
    p = wire_next(&w);
    ok(p.opcode == OP_ATOMIC_ACK && p.psn == (psn & PSN_MASK) && p.atomic_orig == 37 && *cell == 1000,
       "the same again: the saved result, and the memory stays as it is");
    psn++;
    struct pkt swap = {.opcode = OP_CMP_SWAP,
                       .psn = psn,
                       .atomic = {.va = (uintptr_t)cell, .rkey = e.mr->rkey, .compare = 1000, .swap_add = 7}};
    wire_send(&w, swap, NULL, 0);
    need(wire_next(&w).atomic_orig == 1000 && *cell == 7);
    *cell = 1000, msn++;
    wire_send(&w, swap, NULL, 0);
    ok(wire_next(&w).atomic_orig == 1000 && *cell == 1000, "a compare-and-swap that would succeed a second time");
    psn++;
}

/* READ responses from PSN `from` on: the bytes of the memory. */
static bool responses(uint32_t from, uint32_t last, uint32_t at)
{
    for (uint32_t i = from; i <= last; i++) {
        struct pkt p = wire_next(&w);
        uint8_t op = from == last ? OP_READ_RESP_ONLY
                     : i == from  ? OP_READ_RESP_FIRST
                     : i == last  ? OP_READ_RESP_LAST
                                  : OP_READ_RESP_MIDDLE;
        if (p.opcode != op || p.psn != (i & PSN_MASK) || memcmp(p.payload, e.buf + at, p.payload_len) != 0 ||
            (op_table[op].headers & OP_HAS_AETH && p.aeth.msn != (msn & PSN_MASK))) {
            printf("# got: opcode 0x%02x, PSN %u, MSN %u, %u bytes\n", p.opcode, p.psn, p.aeth.msn, p.payload_len);
            return false;
        }
        at += p.payload_len;
    }
    return wire_quiet(&w);
}

static void reads(void)
{
    struct pkt whole = {.opcode = OP_READ_REQUEST, .psn = psn, .reth = {(uintptr_t)e.buf + 4096, e.mr->rkey, LONG}};
    fill(2);
    memcpy(e.buf + 4096, data, LONG);
    wire_send(&w, whole, NULL, 0);
    msn++;
    ok(responses(psn, psn + 2, 4096),
       "a READ takes a PSN for each packet of its response, and counts in the MSN at once");
    fill(3);
    memcpy(e.buf + 4096, data, LONG);
    wire_send(&w, whole, NULL, 0);
    ok(responses(psn, psn + 2, 4096), "a READ that comes twice is carried out twice: the memory of now");
    fill(4);
    memcpy(e.buf + 4096, data, LONG);
    wire_send(&w,
              (struct pkt){.opcode = OP_READ_REQUEST,
                           .psn = psn + 1,
                           .reth = {(uintptr_t)e.buf + 4096 + WIRE_MTU, e.mr->rkey, LONG - WIRE_MTU}},
              NULL, 0);
    ok(responses(psn + 1, psn + 2, 4096 + WIRE_MTU), "the end of it alone, with the PSNs that it had");
    psn += 3;
    wire_send(&w,
              (struct pkt){.opcode = OP_READ_REQUEST, .psn = psn, .reth = {(uintptr_t)e.buf + 4096, e.mr->rkey, 100}},
              NULL, 0);
    msn++;
    ok(responses(psn, psn, 4096), "the next READ continues behind them");
    psn++;
}

/* The responder drops a repeated atomic whose result it no longer keeps: more than the agreed number came after it. It also drops PSNs that
 * can't be of this connection. */
static void too_old(void)
{
    uint64_t *cell = (void *)(e.buf + 256);
    struct pkt add = {.opcode = OP_FETCH_ADD,
                      .psn = psn,
                      .atomic = {.va = (uintptr_t)cell, .rkey = e.mr->rkey, .swap_add = 1}},
               first = add;
    *cell = 0;
    for (unsigned i = 0; i < 200; i++) {
        add.psn = psn++;
        wire_send(&w, add, NULL, 0);
        need(wire_next(&w).atomic_orig == i);
        msn++;
    }
    wire_send(&w, first, NULL, 0);
    ok(wire_quiet(&w) && *cell == 200, "an atomic from long ago: no answer, and the memory stays as it is");
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn + 100000}, "far", 4);
    ok(wire_quiet(&w), "a PSN far ahead: no answer");
    wire_send(&w, (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn - 100000}, "far", 4);
    ok(wire_quiet(&w), "a PSN far behind: no answer");
}

int main(void)
{
    VT_OWN("it needs the packets of the device");
    vt_ctx = vt_open();
    wire_open(&w, vt_ctx);
    vt_end_open(&e, vt_ctx);
    need((e.qp = vt_end_qp(&e, IBV_QPT_RC, NULL, 0)));
    psn = FIRST;
    wire_connect(&w, e.qp, FIRST);
    counts();
    gap("one NAK for a gap, however many packets come behind it");
    gap("the next gap has a NAK of its own");
    duplicates();
    atomics();
    reads();
    too_old();
    wire_close(&w);
    ok(vt_end_close(&e) && ibv_close_device(vt_ctx) == 0, "all is closed");
    return vt_failed;
}
