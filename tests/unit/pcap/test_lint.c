// SPDX-License-Identifier: BSD-2-Clause
/* Reading captures: formats, link layers, and the linter's rules about frames. Its rules about packets and connections
 * are tested by tests/e2e/capture/lint.sh. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/frame.h"
#include "pcap/lint/lint.h"
#include "pcap/note.h"
#include "pcap/pcapng.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define NUM 4 /* packets in each capture of this test */
#define MAX 4096

/* A SEND of len bytes as UDP payload, with the right ICRC for ip_id. Returns its length. */
static size_t send_only(uint8_t *buf, const struct frame_flow *f, uint32_t psn, uint32_t len, bool is_v6,
                        uint16_t ip_id)
{
    struct pkt p = {.opcode = OP_SEND_ONLY, .migreq = true, .pkey = PKEY_DEFAULT, .dest_qpn = 17, .psn = psn};
    struct icrc_flow flow = {.src_port = f->src_port, .dst_port = f->dst_port, .is_v6 = is_v6};
    struct icrc_ctx ctx;
    size_t n = pkt_encode(&p, buf);

    memcpy(flow.src, f->src, 16);
    memcpy(flow.dst, f->dst, 16);
    icrc_ctx_init(&ctx, &flow);
    memset(buf + n, 0, len);
    n += len;
    icrc_store(buf + n, icrc_compute(&ctx, ip_id, buf, n));
    return n + ICRC_LEN;
}

static struct frame_flow make_flow(bool is_v6)
{
    struct frame_flow f = {.src_port = 50000, .dst_port = ROCE_PORT};
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1};
    static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

    memcpy(f.src, is_v6 ? v6 : v4, 16);
    memcpy(f.dst, f.src, 16);
    f.dst[15] = 2;
    return f;
}

/* A frame without its Ethernet header. Returns its length. */
static size_t ip_packet(uint8_t *buf, uint32_t psn, bool is_v6)
{
    struct frame_flow f = make_flow(is_v6);
    uint8_t payload[256], frame[FRAME_HEAD_MAX];
    size_t len = send_only(payload, &f, psn, 40, is_v6, 0), head = frame_head(frame, &f, payload, len);

    memcpy(buf, frame + 14, head - 14);
    memcpy(buf + head - 14, payload, len);
    return head - 14 + len;
}

static struct lint_result lint_bytes(const uint8_t *data, size_t len, int expected)
{
    struct lint_options options = {.tm = LINT_TM_AUTO};
    struct lint_result r;
    FILE *f = fmemopen((void *)data, len, "rb");

    cr_assert_not_null(f);
    cr_expect_eq(lint_run(&r, f, &options), expected, "%s", r.error);
    return r;
}

static unsigned count(const struct lint_result *r, const char *rule)
{
    unsigned n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += strcmp(lint_rules[r->findings[i].rule].id, rule) == 0;
    return n;
}

/* --- a pcapng in memory ------------------------------------------------------------------------ */

struct file {
    uint8_t data[65536];
    size_t len;
};

static void begin(struct file *f, int linktype)
{
    f->len = pcapng_section(f->data, sizeof(f->data), "test");
    f->len += pcapng_interface(f->data + f->len, sizeof(f->data) - f->len, NULL);
    put_le16(f->data + f->len - pcapng_interface(NULL, 0, NULL) + 8, (uint16_t)linktype);
}

static void add_frame(struct file *f, const uint8_t *frame, size_t len, enum pcapng_direction direction)
{
    struct pcapng_packet p = {.direction = direction, .time_ns = 1000, .data = frame, .len = len};

    f->len += pcapng_packet(f->data + f->len, sizeof(f->data) - f->len, &p);
}

/* One frame on Ethernet. Cuts off its last bytes, or changes one byte. */
static struct lint_result one_frame(size_t cut_caplen, int at, uint8_t value)
{
    static struct file file;
    uint8_t frame[MAX] = {[12] = 0x08};
    size_t len = 14 + ip_packet(frame + 14, 100, false), block;

    if (at >= 0)
        frame[at] = value;
    begin(&file, 1);
    block = file.len;
    add_frame(&file, frame, len - cut_caplen, PCAPNG_DIR_UNKNOWN);
    put_le32(file.data + block + 24, (uint32_t)len); /* original length */
    return lint_bytes(file.data, file.len, 0);
}

Test(lint, a_correct_frame)
{
    struct lint_result r = one_frame(0, -1, 0);

    cr_expect_eq(r.n, 0);
    cr_expect_eq(r.packets, 1);
    lint_free(&r);
}

Test(lint, lengths_that_contradict_each_other)
{
    struct lint_result r = one_frame(0, 14 + 20 + 5, 99); /* UDP length */

    cr_expect_eq(count(&r, "udp-length"), 1);
    cr_expect_eq(r.errors, 1);
    lint_free(&r);
    r = one_frame(0, 14 + 3, 255); /* IP total length: longer than the frame */
    cr_expect_eq(count(&r, "udp-length"), 1);
    lint_free(&r);
}

Test(lint, fragment)
{
    struct lint_result r = one_frame(0, 14 + 6, 0x20); /* more fragments */

    cr_expect_eq(count(&r, "ip-fragment"), 1);
    cr_expect_eq(r.packets, 0);
    lint_free(&r);
}

Test(lint, truncated)
{
    struct lint_result r = one_frame(20, -1, 0);

    cr_expect_eq(count(&r, "truncated"), 1);
    cr_expect_eq(r.errors, 0);
    cr_expect_eq(r.packets, 1);
    lint_free(&r);
}

/* With GSO, several packets are one datagram. The kernel would have given its segments the IP IDs 0, 1 and 2. */
static struct lint_result merged(unsigned step, bool spoil)
{
    static struct file file;
    struct frame_flow f = make_flow(false);
    uint8_t payload[MAX], frame[MAX + FRAME_HEAD_MAX];
    size_t len = 0, head;

    for (uint32_t i = 0; i < NUM; i++)
        len += send_only(payload + len, &f, 100 + i, i + 1 < NUM ? 64 : 36, false, (uint16_t)(i * step));
    payload[len / 2] ^= spoil;
    head = frame_head(frame, &f, payload, len);
    memcpy(frame + head, payload, len);
    begin(&file, 1);
    add_frame(&file, frame, head + len, PCAPNG_DIR_OUT);
    return lint_bytes(file.data, file.len, 0);
}

Test(lint, merged_packets_are_split)
{
    for (unsigned step = 0; step < 2; step++) {
        struct lint_result r = merged(step, false);

        cr_expect_eq(count(&r, "merged"), 1);
        cr_expect_eq(r.errors, 0, "%s", r.n > 1 ? r.findings[1].text : "");
        cr_expect_eq(r.packets, NUM);
        lint_free(&r);
    }
}

Test(lint, merged_packets_that_cannot_be_split)
{
    struct lint_result r = merged(1, true);

    cr_expect_eq(r.errors, 1); /* taken as one packet, it is damaged */
    cr_expect_eq(count(&r, "icrc"), 1);
    lint_free(&r);
}

/* --- link layers ------------------------------------------------------------------------------- */

/* Writes the bytes before the IP header in captures of each link type. Returns how many. */
static size_t link_header(int linktype, bool is_v6, uint8_t *p)
{
    uint16_t type = is_v6 ? 0x86dd : 0x0800;

    memset(p, 0, 24);
    switch (linktype) {
    case 1:
        put_be16(p + 12, 0x8100); /* with a VLAN tag */
        put_be16(p + 16, type);
        return 18;
    case 113: /* SLL */
        put_be16(p + 14, type);
        return 16;
    case 276: /* SLL2 */
        put_be16(p, type);
        p[7] = 3;
        return 20;
    case 0:
    case 108:
        p[3] = is_v6 ? 30 : 2;
        return 4;
    default:
        return 0;
    }
}

Test(lint, link_layers)
{
    static const int types[] = {1, 0, 108, 101, 228, 229, 113, 276};
    static struct file file;

    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (int v6 = types[t] == 229; v6 <= (types[t] != 228); v6++) {
            struct lint_result r;

            begin(&file, types[t]);
            for (uint32_t i = 0; i < NUM; i++) {
                uint8_t frame[MAX];
                size_t len = link_header(types[t], v6, frame);

                add_frame(&file, frame, len + ip_packet(frame + len, 100 + i, v6), PCAPNG_DIR_UNKNOWN);
            }
            r = lint_bytes(file.data, file.len, 0);
            cr_expect_eq(r.packets, NUM, "link type %d: %u packets", types[t], r.packets);
            cr_expect_eq(r.n, 0, "link type %d: %s", types[t], r.n ? r.findings[0].text : "");
            lint_free(&r);
        }
    }
}

/* The same packets as sent and as received on one interface, as on loopback. The copies are not retransmissions. */
Test(lint, both_directions)
{
    static struct file file;
    struct lint_result r;

    begin(&file, 101);
    for (uint32_t i = 0; i < NUM; i++) {
        uint8_t frame[MAX];
        size_t len = ip_packet(frame, 100 + i, false);

        add_frame(&file, frame, len, PCAPNG_DIR_OUT);
        add_frame(&file, frame, len, PCAPNG_DIR_IN);
    }
    r = lint_bytes(file.data, file.len, 0);
    cr_expect_eq(r.n, 0);
    cr_expect_eq(r.packets, 2 * NUM);
    lint_free(&r);
}

/* --- files ------------------------------------------------------------------------------------- */

/* Every beginning of a valid file is read without further messages. It is reported as cut off unless it ends between
 * blocks. */
Test(lint, files_that_end_early)
{
    static struct file file;
    unsigned whole = 0;

    begin(&file, 101);
    for (uint32_t i = 0; i < NUM; i++) {
        uint8_t frame[MAX];

        add_frame(&file, frame, ip_packet(frame, 100 + i, false), PCAPNG_DIR_UNKNOWN);
    }
    for (size_t len = 1; len <= file.len; len++) {
        struct lint_options options = {.tm = LINT_TM_AUTO};
        struct lint_result r;
        FILE *f = fmemopen(file.data, len, "rb");
        int err = lint_run(&r, f, &options);

        cr_expect_eq(err == 0, r.error[0] == 0, "%zu bytes", len);
        cr_expect_eq(r.errors, 0);
        whole += err == 0;
        lint_free(&r);
    }
    cr_expect_eq(whole, 2 + NUM); /* after the section, the interface, and each packet */
}

Test(lint, byte_order_and_lost_packets)
{
    /* A section in the other byte order: its header, an interface (raw IP), and statistics with 3 dropped packets. */
    static const uint8_t data[] = {
        0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28, /* section */
        0,    0,    0,    1,    0, 0, 0, 20, 0,    101,  0,    0,    0, 0, 0, 0, 0,    0,    0,    20, /* interface */
        0,    0,    0,    5,    0, 0, 0, 40, 0,    0,    0,    0,    0, 0, 0, 0, 0,    0,    0,    0,
        0,    5,    0,    8,    0, 0, 0, 0,  0,    0,    0,    3,    0, 0, 0, 0, 0,    0,    0,    40, /* statistics */
    };
    struct lint_result r = lint_bytes(data, sizeof(data), 0);

    cr_expect_eq(r.lost, 3);
    cr_expect_eq(r.frames, 0);
    lint_free(&r);
}

Test(lint, classic_pcap)
{
    uint8_t frame[MAX], *data;
    size_t size, len;
    char *text = NULL;
    FILE *memory = open_memstream(&text, &size);
    pcap_t *dead = pcap_open_dead(DLT_RAW, 65535);
    pcap_dumper_t *d = pcap_dump_fopen(dead, memory);
    struct lint_result r;

    for (uint32_t i = 0; i < NUM; i++) {
        struct pcap_pkthdr h = {.ts = {1, (int)i}};

        len = ip_packet(frame, 100 + i, i % 2);
        h.caplen = h.len = (bpf_u_int32)len;
        pcap_dump((u_char *)d, &h, frame);
    }
    fflush(memory);
    data = malloc(size);
    memcpy(data, text, size);
    len = size;
    pcap_dump_close(d);
    pcap_close(dead);
    r = lint_bytes(data, len, 0);
    cr_expect_eq(r.packets, NUM);
    cr_expect_eq(r.errors, 0);
    lint_free(&r);
    free(data);
    free(text);
}

/* --- captures whose notes say which packets are retransmissions -------------------------------- */

#define REQUESTER 5u /* the QP that sends to QP 17; the other end has the numbers the other way round */
#define RESPONDER 17u

/* data: bytes of payload, all 0. damaged: a fault struck the packet after its ICRC was made. */
static void add_struck(struct file *f, const struct pkt *packet, size_t data, bool retransmit, bool damaged)
{
    struct frame_flow flow = make_flow(false), back = flow;
    bool answer = packet->dest_qpn == REQUESTER;
    struct note note = {
        .qpn = answer ? RESPONDER : REQUESTER, .retransmit = retransmit, .faults = damaged ? NOTE_DAMAGED : 0};
    uint8_t payload[512] = {0}, frame[MAX];
    char comment[NOTE_MAX];
    struct icrc_ctx ctx;

    memcpy(back.src, flow.dst, 16);
    memcpy(back.dst, flow.src, 16);
    flow = answer ? back : flow;
    struct icrc_flow icrc = {.src_port = flow.src_port, .dst_port = flow.dst_port};
    memcpy(icrc.src, flow.src, 16);
    memcpy(icrc.dst, flow.dst, 16);
    icrc_ctx_init(&ctx, &icrc);
    size_t len = pkt_encode(packet, payload) + data;
    icrc_store(payload + len, icrc_compute(&ctx, 0, payload, len) ^ damaged);
    len += ICRC_LEN;
    size_t head = frame_head(frame, &flow, payload, len);
    memcpy(frame + head, payload, len);
    note_format(&note, comment);
    struct pcapng_packet p = {
        .direction = PCAPNG_DIR_OUT, .time_ns = 1000 + f->len, .data = frame, .len = head + len, .comment = comment};
    f->len += pcapng_packet(f->data + f->len, sizeof(f->data) - f->len, &p);
}

static void add_noted(struct file *f, const struct pkt *packet, bool retransmit)
{
    add_struck(f, packet, 0, retransmit, false);
}

static void add_send(struct file *f, uint32_t psn, bool retransmit)
{
    add_noted(f,
              &(struct pkt){.opcode = OP_SEND_ONLY,
                            .migreq = true,
                            .pkey = PKEY_DEFAULT,
                            .dest_qpn = RESPONDER,
                            .ackreq = true,
                            .psn = psn},
              retransmit);
}

static void add_ack(struct file *f, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    add_noted(f,
              &(struct pkt){.opcode = OP_ACK,
                            .migreq = true,
                            .pkey = PKEY_DEFAULT,
                            .dest_qpn = REQUESTER,
                            .psn = psn,
                            .aeth = {syndrome, msn}},
              false);
}

/* The network delays the first packet of a connection. Its retransmission overtakes it. */
static void first_packet_is_late(struct file *f)
{
    begin(f, 1);
    add_send(f, 101, false);
    add_ack(f, 100, NAK_PSN_SEQUENCE, 0);
    add_send(f, 100, true);
    add_send(f, 101, true);
    add_ack(f, 101, AETH_NO_CREDITS, 2);
    add_send(f, 100, false);
    add_ack(f, 101, AETH_NO_CREDITS, 2);
    add_send(f, 102, false);
    add_ack(f, 102, AETH_NO_CREDITS, 3);
}

Test(lint, a_late_first_packet_does_not_begin_a_connection)
{
    static struct file file;

    first_packet_is_late(&file);
    struct lint_result r = lint_bytes(file.data, file.len, 0);
    cr_expect_eq(r.errors, 0);
    cr_expect_eq(r.connections, 1);
    cr_expect_eq(count(&r, "restart"), 0);
    lint_free(&r);
}

Test(lint, the_same_first_packet_begins_a_connection)
{
    static struct file file;

    first_packet_is_late(&file);
    add_send(&file, 100, false);
    add_ack(&file, 100, AETH_NO_CREDITS, 1);
    struct lint_result r = lint_bytes(file.data, file.len, 0);
    cr_expect_eq(r.errors, 0);
    cr_expect_eq(count(&r, "restart"), 1);
    lint_free(&r);
}

/* A READ request. The bytes of a response come in packets of 256. */
static void add_read(struct file *f, uint32_t psn, uint32_t bytes, bool retransmit, bool damaged)
{
    add_struck(f,
               &(struct pkt){.opcode = OP_READ_REQUEST,
                             .migreq = true,
                             .pkey = PKEY_DEFAULT,
                             .dest_qpn = RESPONDER,
                             .ackreq = true,
                             .psn = psn,
                             .reth = {.va = 4096, .rkey = 7, .length = bytes}},
               0, retransmit, damaged);
}

static void add_response(struct file *f, uint32_t psn, uint8_t opcode, uint32_t msn)
{
    add_struck(f,
               &(struct pkt){.opcode = opcode,
                             .migreq = true,
                             .pkey = PKEY_DEFAULT,
                             .dest_qpn = REQUESTER,
                             .psn = psn,
                             .aeth = {AETH_NO_CREDITS, msn}},
               256, false, false);
}

/* A fault struck the length of the second READ. The third one is a READ of its own, and no part of the second. */
Test(lint, the_length_of_a_damaged_read_is_not_known)
{
    static struct file file;

    begin(&file, 1);
    add_read(&file, 100, 512, false, false);
    add_read(&file, 102, 2u << 20, false, true);
    add_read(&file, 104, 512, false, false);
    add_read(&file, 102, 512, true, false);
    for (uint32_t i = 0; i < 3; i++) {
        add_response(&file, 100 + 2 * i, OP_READ_RESP_FIRST, i + 1);
        add_response(&file, 101 + 2 * i, OP_READ_RESP_LAST, i + 1);
    }
    struct lint_result r = lint_bytes(file.data, file.len, 0);
    cr_expect_eq(r.errors, 0);
    cr_expect_eq(count(&r, "ack-unsent"), 0);
    lint_free(&r);
}

Test(lint, no_capture)
{
    struct lint_result r = lint_bytes((const uint8_t *)"hello, world, this is no capture", 32, -EINVAL);

    cr_expect(r.error[0]);
    lint_free(&r);
}

/* The table of rules is complete, and its names are unique. */
Test(lint, table_of_rules)
{
    for (unsigned i = 0; i < LINT_RULES; i++) {
        cr_assert(lint_rules[i].id && lint_rules[i].text && lint_rules[i].spec, "rule %u", i);
        for (unsigned k = 0; k < i; k++)
            cr_expect(strcmp(lint_rules[i].id, lint_rules[k].id) != 0, "%s twice", lint_rules[i].id);
    }
}
