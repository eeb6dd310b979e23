// SPDX-License-Identifier: BSD-2-Clause
/* wire_gen FILE.pcapng: writes a capture with packets of every opcode, over IPv4 and IPv6. For each packet it prints
 * what a reader of the capture must find: one line of tab-separated fields, as `tshark -T fields` prints them.
 * tests/e2e/capture/wire_tshark.sh uses it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pcap/capfile.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define TIME_NS 1700000000123456789u

/* Wireshark 4.0 can't decode these. It shows a BTH with data. */
static bool is_opaque(uint8_t opcode)
{
    uint8_t operation = opcode & OP_OPERATION_MASK;

    return (opcode & OP_SERVICE_MASK) == OP_SERVICE_XRC || operation == OP_FLUSH || operation == OP_ATOMIC_WRITE ||
           opcode == OP_CNP || opcode == OP_CNP_ALT;
}

/* A packet whose every field is different and uses its highest bit, varied by salt. */
static void fill(struct pkt *p, uint8_t opcode, uint32_t salt)
{
    *p = (struct pkt){
        .opcode = opcode,
        .solicited = salt & 1,
        .migreq = true,
        .ackreq = salt >> 1 & 1,
        .pkey = PKEY_DEFAULT,
        .dest_qpn = 0x800011 + salt,
        .psn = 0xfedc00 + salt,
        .srqn = 0xa00000 + salt,
        .deth = {0x80010000 + salt, 0xd00000 + salt},
        .feth = {1, 3},
        .reth = {0xf122334455660000 + salt, 0xe2000000 + salt, 0x80000000 - salt},
        .atomic = {0xf788990011220000 + salt, 0xe3000000 + salt, 0xf9abcdef01230000 + salt, 0xf845670123450000 + salt},
        .aeth = {(uint8_t)(salt & 4 ? AETH_NO_CREDITS : NAK_REMOTE_ACCESS), 0xc00000 + salt},
        .atomic_orig = 0xf00dfacecafe0000 + salt,
        .imm = {0xde, 0xad, (uint8_t)(salt >> 8), (uint8_t)salt},
        .inv_rkey = 0xe4000000 + salt,
    };
}

static uint32_t payload_len(const struct op_info *info, uint32_t salt)
{
    switch (info->payload) {
    case OP_PAYLOAD_FULL:
        return PKT_MTU_MIN;
    case OP_PAYLOAD_LAST:
    case OP_PAYLOAD_ONLY:
        return 33 + salt % 4; /* every pad */
    case OP_PAYLOAD_8:
        return 8;
    case OP_PAYLOAD_CNP:
        return PKT_CNP_LEN;
    default:
        return 0;
    }
}

/* The UDP payload; returns its length. */
static size_t assemble(struct pkt *p, const struct frame_flow *flow, bool is_v6, uint32_t salt, uint8_t *buf)
{
    struct icrc_flow icrc_flow = {.src_port = flow->src_port, .dst_port = flow->dst_port, .is_v6 = is_v6};
    struct icrc_ctx ctx;
    size_t len;

    memcpy(icrc_flow.src, flow->src, 16);
    memcpy(icrc_flow.dst, flow->dst, 16);
    icrc_ctx_init(&ctx, &icrc_flow);
    p->payload_len = payload_len(&op_table[p->opcode], salt);
    p->pad = (uint8_t)pkt_pad(p->payload_len);
    len = pkt_encode(p, buf);
    memset(buf + len, p->opcode == OP_CNP || p->opcode == OP_CNP_ALT ? 0 : 0x5a, p->payload_len);
    len += p->payload_len;
    memset(buf + len, 0, p->pad);
    len += p->pad;
    icrc_store(buf + len, icrc_compute(&ctx, flow->ip_id, buf, len));
    return len + ICRC_LEN;
}

/* One line, in the order of the -e options of the script. A header that isn't there is an empty field; va and rkey
 * are one column for both headers that have them. */
static void expect(const struct pkt *p, const uint8_t *buf, size_t len)
{
    bool opaque = is_opaque(p->opcode);
    uint16_t h = opaque ? 0 : op_table[p->opcode].headers;

    printf("\t%u\t%u\t%u\t%u\t%u\t%u\t0x%06x\t%u\t%u\t", p->opcode, p->solicited, p->migreq, p->pad, p->tver, p->pkey,
           p->dest_qpn, p->ackreq, p->psn);
    if (h & OP_HAS_DETH)
        printf("0x%016" PRIx64 "\t0x%08x\t", (uint64_t)p->deth.qkey, p->deth.src_qpn);
    else
        printf("\t\t");
    if (h & OP_HAS_RETH)
        printf("0x%016" PRIx64 "\t0x%08x\t%u\t\t\t", p->reth.va, p->reth.rkey, p->reth.length);
    else if (h & OP_HAS_ATOMICETH)
        printf("0x%016" PRIx64 "\t0x%08x\t\t%" PRIu64 "\t%" PRIu64 "\t", p->atomic.va, p->atomic.rkey,
               p->atomic.swap_add, p->atomic.compare);
    else
        printf("\t\t\t\t\t");
    if (h & OP_HAS_AETH)
        printf("%u\t%u\t", p->aeth.syndrome, p->aeth.msn);
    else
        printf("\t\t");
    if (h & OP_HAS_ATOMICACKETH)
        printf("%" PRIu64, p->atomic_orig);
    printf("\t");
    if (h & OP_HAS_IMMDT)
        printf("%02x%02x%02x%02x", p->imm[0], p->imm[1], p->imm[2], p->imm[3]);
    printf("\t");
    if (h & OP_HAS_IETH)
        printf("%08x", p->inv_rkey);
    printf("\t");
    if (!opaque)
        printf("0x%02x%02x%02x%02x", buf[len - 4], buf[len - 3], buf[len - 2], buf[len - 1]);
    printf("\t");
    for (size_t i = BTH_LEN; opaque && i < len; i++)
        printf("%02x", buf[i]);
    printf("\n");
}

static int write_all(struct capfile *c)
{
    static const struct frame_flow flows[2] = {
        {.src = {[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1},
         .dst = {[10] = 0xff, [11] = 0xff, [12] = 198, 51, 100, 2},
         .src_port = 50001,
         .dst_port = ROCE_PORT,
         .ip_id = 0xbeef,
         .tos = 0x02},
        {.src = {0x20, 0x01, 0x0d, 0xb8, [15] = 1},
         .dst = {0x20, 0x01, 0x0d, 0xb8, [15] = 2},
         .src_port = 50002,
         .dst_port = ROCE_PORT,
         .tos = 0x02},
    };
    uint8_t buf[PKT_HEADERS_MAX + PKT_MTU_MIN + ICRC_LEN];
    uint32_t salt = 0;

    for (unsigned op = 0; op < 256; op++) {
        for (unsigned v6 = 0; op_table[op].name && v6 < 2; v6++, salt++) {
            struct pkt p;
            size_t len;
            char comment[64];
            int err;

            fill(&p, (uint8_t)op, salt);
            len = assemble(&p, &flows[v6], v6, salt, buf);
            snprintf(comment, sizeof(comment), "packet %" PRIu32 " %s", salt, op_service_name((uint8_t)op));
            err = capfile_add_udp(c, 0, TIME_NS + salt, &flows[v6], buf, len, PCAPNG_DIR_OUT, comment);
            if (err)
                return err;
            printf("%s|%s\t%" PRIu64 ".%09" PRIu64, comment, op_table[op].name, (TIME_NS + salt) / 1000000000,
                   (TIME_NS + salt) % 1000000000);
            expect(&p, buf, len);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct capfile c;
    int err;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE.pcapng\n", argv[0]);
        return 2;
    }
    err = capfile_open(&c, argv[1], "wire_gen");
    if (!err) {
        int close_err;

        err = capfile_add_interface(&c, "lab0");
        if (err >= 0)
            err = write_all(&c);
        close_err = capfile_close(&c);
        err = err ? err : close_err;
    }
    if (err) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
        return 1;
    }
    return 0;
}
