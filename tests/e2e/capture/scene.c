// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pcap/note.h"
#include "tests/e2e/capture/scene.h"
#include "wire/icrc.h"

#define TIME_NS 1700000000000000000u
#define STEP_NS 10000

static int error; /* the first; a program writes one scene at a time */

static void keep(int err)
{
    if (err < 0 && !error)
        error = err;
}

int scene_open(struct scene *s, const char *path)
{
    memset(s, 0, sizeof(*s));
    error = 0;
    s->now = TIME_NS;
    s->qpn[A] = SCENE_QPN_A;
    s->qpn[B] = SCENE_QPN_B;
    s->psn[A] = 0x100;
    s->psn[B] = 0xfffff0; /* close to the wrap */
    keep(capfile_open(&s->file, path, "Pumice scene"));
    if (!error)
        keep(capfile_add_interface(&s->file, "lab0"));
    return error;
}

int scene_close(struct scene *s)
{
    keep(capfile_close(&s->file));
    return error;
}

static struct frame_flow flow_from(const struct scene *s, int from)
{
    struct frame_flow f = {.src_port = 0xc123, .dst_port = ROCE_PORT, .ip_id = s->ip_id};
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1};
    static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

    memcpy(f.src, s->is_v6 ? v6 : v4, 16);
    memcpy(f.dst, f.src, 16);
    f.src[15] = from == A ? 1 : 2;
    f.dst[15] = from == A ? 2 : 1;
    return f;
}

/* UDP payload of a draft; returns its length. */
static size_t assemble(const struct scene *s, int from, struct scene_draft *d, uint8_t *buf)
{
    struct frame_flow f = flow_from(s, from);
    struct icrc_flow flow = {.src_port = f.src_port, .dst_port = f.dst_port, .is_v6 = s->is_v6};
    struct icrc_ctx ctx;
    size_t len;
    uint32_t pad = pkt_pad(d->len);

    memcpy(flow.src, f.src, 16);
    memcpy(flow.dst, f.dst, 16);
    icrc_ctx_init(&ctx, &flow);
    d->p.pad = (uint8_t)((int)pad + d->pad_skew) & 3;
    len = pkt_encode(&d->p, buf);
    buf[BTH_LEN] |= d->reserved;
    memcpy(buf + len, d->payload, d->len);
    len += d->len;
    memset(buf + len, d->pad_byte, pad);
    len += pad;
    len -= (size_t)d->cut;
    icrc_store(buf + len, icrc_compute(&ctx, s->ip_id, buf, len) ^ d->icrc_flip);
    return len + ICRC_LEN;
}

/* Writes buf[0 ... n) as it leaves an end. */
static void put(struct scene *s, const char *label, int from, const uint8_t *buf, size_t n)
{
    struct frame_flow flow = flow_from(s, from);
    struct note note = {.qpn = s->qpn[from]};
    char text[NOTE_MAX];
    enum pcapng_direction direction = s->noted                           ? PCAPNG_DIR_OUT
                                      : s->seen == NOWHERE               ? PCAPNG_DIR_UNKNOWN
                                      : (from == A) == (s->seen == AT_A) ? PCAPNG_DIR_OUT
                                                                         : PCAPNG_DIR_IN;

    note_format(&note, text);
    s->now += STEP_NS;
    keep(capfile_add_udp(&s->file, 0, s->now, &flow, buf, n, direction, s->noted ? text : label));
}

void scene_put(struct scene *s, const char *label, int from, struct pkt p, const void *payload, uint32_t len)
{
    struct scene_draft d = {.p = p, .len = len, .copies = 1};
    uint8_t buf[PKT_HEADERS_MAX + sizeof(d.payload) + 8];

    d.p.migreq = true;
    d.p.pkey = p.pkey ? p.pkey : PKEY_DEFAULT;
    d.p.dest_qpn = p.dest_qpn ? p.dest_qpn : s->qpn[!from];
    if (!d.p.srqn)
        d.p.srqn = s->srqn;
    if (payload)
        memcpy(d.payload, payload, len);
    else
        for (uint32_t i = 0; i < len; i++)
            d.payload[i] = (uint8_t)i; /* a SEND begins with 0, which is no tag */
    if (s->spoil && label && strcmp(s->spoil, label) == 0) {
        s->spoiler(&d);
        s->spoilt++;
    }
    for (unsigned i = 0; i < d.copies; i++) {
        size_t n = assemble(s, from, &d, buf);

        put(s, label, from, buf, n);
    }
}

uint32_t scene_request_of(struct scene *s, const char *label, int from, uint8_t op, struct pkt p, const void *payload,
                          uint32_t len)
{
    p.opcode = s->service | op;
    p.psn = s->psn[from]++ & PSN_MASK;
    p.ackreq = !(op_table[p.opcode].properties & (OP_IS_FIRST | OP_IS_MIDDLE)) && s->service != OP_SERVICE_UC;
    scene_put(s, label, from, p, payload, len);
    return p.psn;
}

uint32_t scene_request(struct scene *s, const char *label, int from, uint8_t op, const void *payload, uint32_t len)
{
    return scene_request_of(s, label, from, op, (struct pkt){0}, payload, len);
}

uint32_t scene_read(struct scene *s, const char *label, int from, uint64_t va, uint32_t rkey, uint32_t len)
{
    struct pkt p = {.reth = {va, rkey, len}};
    uint32_t psn = scene_request_of(s, label, from, OP_READ_REQUEST, p, NULL, 0);

    if (len > SCENE_MTU)
        s->psn[from] += (len - 1) / SCENE_MTU;
    return psn;
}

void scene_read_responses(struct scene *s, const char *label, int from, uint32_t psn, uint32_t len)
{
    uint32_t n = len ? (len + SCENE_MTU - 1) / SCENE_MTU : 1;
    char name[64];

    for (uint32_t i = 0; i < n; i++) {
        bool last = i + 1 == n;
        uint8_t op = n == 1   ? OP_READ_RESP_ONLY
                     : i == 0 ? OP_READ_RESP_FIRST
                     : last   ? OP_READ_RESP_LAST
                              : OP_READ_RESP_MIDDLE;
        struct pkt p = {
            .opcode = s->service | op, .psn = (psn + i) & PSN_MASK, .aeth = {AETH_NO_CREDITS, s->msn[from] & PSN_MASK}};

        snprintf(name, sizeof(name), "%s.%s", n == 1 ? "only" : i == 0 ? "first" : last ? "last" : "middle", label);
        scene_put(s, name, from, p, NULL, last ? len - i * SCENE_MTU : SCENE_MTU);
    }
}

void scene_ack(struct scene *s, const char *label, int from, uint32_t psn, uint8_t syndrome)
{
    struct pkt p = {.opcode = s->service | OP_ACK, .psn = psn, .aeth = {syndrome, s->msn[from] & PSN_MASK}};

    scene_put(s, label, from, p, NULL, 0);
}

static void acknowledge(struct scene *s, const char *label, int from, uint32_t psn)
{
    char name[64];

    snprintf(name, sizeof(name), "ack.%s", label);
    scene_done(s, from);
    scene_ack(s, name, from, psn, AETH_NO_CREDITS);
}

void scene_send(struct scene *s, const char *label, int from, const void *payload, uint32_t len)
{
    acknowledge(s, label, !from, scene_request(s, label, from, OP_SEND_ONLY, payload, len));
}

void scene_tm(struct scene *s, const char *label, int from, const struct tmh *t, const struct rvh *r, uint32_t n)
{
    uint8_t buf[SCENE_MTU];
    size_t len = tmh_encode(t, buf);

    if (r)
        len += rvh_encode(r, buf + len);
    memset(buf + len, 0xda, n);
    scene_send(s, label, from, buf, (uint32_t)len + n);
}
