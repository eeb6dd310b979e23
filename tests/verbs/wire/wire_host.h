// SPDX-License-Identifier: BSD-2-Clause
/* A host without a daemon: the program itself sends and receives the packets of a QP there. So a test decides packet by packet what a
 * requester or a responder of Pumice receives, and sees its answers. The other end is a QP of the device under test. IPv4 only. */
#ifndef PUMICE_TESTS_VERBS_WIRE_HOST_H
#define PUMICE_TESTS_VERBS_WIRE_HOST_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/verbs/ends.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define WIRE_QPN 0x345678u /* of this host */
#define WIRE_MTU 1024u

struct wire_host {
    int sock;
    union ibv_gid gid;
    struct sockaddr_in device; /* address and port of the device under test */
    struct icrc_ctx icrc; /* of the packets that leave */
    uint32_t qpn; /* of the QP at the device */
    uint8_t buf[8192]; /* the last packet that came */
};

/* An address that is like the device's, but that no daemon of the test has. */
static inline void wire_open(struct wire_host *w, struct ibv_context *ctx)
{
    union ibv_gid device = vt_gid(ctx);
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct icrc_flow flow = {.src_port = ROCE_PORT, .dst_port = ROCE_PORT};
    int probe = IP_PMTUDISC_PROBE; /* the IP ID is 0, as the ICRC says */
    need(memcmp(device.raw, mapped, sizeof(mapped)) == 0);
    *w = (struct wire_host){.gid = device, .device = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)}};
    memcpy(&w->device.sin_addr, device.raw + 12, 4);
    w->gid.raw[13] = (uint8_t)(w->gid.raw[13] + 25);
    memcpy(flow.src, w->gid.raw, 16);
    memcpy(flow.dst, device.raw, 16);
    icrc_ctx_init(&w->icrc, &flow);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
    memcpy(&own.sin_addr, w->gid.raw + 12, 4);
    need((w->sock = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
    need(setsockopt(w->sock, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) == 0);
    need(bind(w->sock, (struct sockaddr *)&own, sizeof(own)) == 0);
}

static inline void wire_close(struct wire_host *w)
{
    close(w->sock);
}

/* Connects a QP of the device to this host. psn: the first of both directions. */
static inline void wire_connect(struct wire_host *w, struct ibv_qp *qp, uint32_t psn)
{
    struct ibv_qp_attr a;
    w->qpn = qp->qp_num;
    need(vt_to_init(qp) == 0);
    int mask = vt_rtr_attr(qp, WIRE_QPN, &w->gid, &a);
    a.rq_psn = psn;
    need(ibv_modify_qp(qp, &a, mask) == 0);
}

/* Sends one packet. p: opcode, PSN and what headers need; it asks for an ACK, unless it is a response. */
static inline void wire_send(struct wire_host *w, struct pkt p, const void *payload, uint32_t len)
{
    uint8_t out[PKT_HEADERS_MAX + PKT_MTU_MAX + 8] = {0};
    p.dest_qpn = w->qpn;
    p.migreq = true;
    p.pkey = PKEY_DEFAULT;
    p.pad = (uint8_t)pkt_pad(len);
    p.ackreq = (op_table[p.opcode].properties & OP_IS_REQUEST) != 0;
    p.psn &= PSN_MASK;
    size_t n = pkt_encode(&p, out);
    if (len > 0)
        memcpy(out + n, payload, len);
    n += len + p.pad;
    icrc_store(out + n, icrc_compute(&w->icrc, 0, out, n));
    n += ICRC_LEN;
    need(sendto(w->sock, out, n, 0, (struct sockaddr *)&w->device, sizeof(w->device)) == (ssize_t)n);
}

/* Takes the next packet, after at most so many seconds. False: none came. */
static inline bool wire_take(struct wire_host *w, double seconds, struct pkt *p)
{
    struct pollfd f = {.fd = w->sock, .events = POLLIN};
    if (poll(&f, 1, (int)(seconds * 1000)) != 1)
        return false;
    ssize_t n = recv(w->sock, w->buf, sizeof(w->buf), 0);
    *p = (struct pkt){0};
    need(n > 0 && pkt_decode(w->buf, (size_t)n, p) == PKT_OK && p->dest_qpn == WIRE_QPN);
    return true;
}

static inline struct pkt wire_next(struct wire_host *w)
{
    struct pkt p;
    need(wire_take(w, vt_wait_seconds(), &p));
    return p;
}

/* Does no packet come for some time? */
static inline bool wire_quiet(struct wire_host *w)
{
    struct pkt p;
    return !wire_take(w, 0.05, &p);
}

/* Is the next packet an acknowledgement with this syndrome, PSN and MSN? An ACK may carry any number of credits. */
static inline bool wire_answer(struct wire_host *w, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct pkt p;
    if (!wire_take(w, vt_wait_seconds(), &p))
        return false;
    uint8_t got = (p.aeth.syndrome & AETH_KIND_MASK) == AETH_ACK ? AETH_ACK : p.aeth.syndrome;
    bool right = (p.opcode & OP_OPERATION_MASK) == OP_ACK && got == syndrome && p.psn == (psn & PSN_MASK) &&
                 p.aeth.msn == (msn & PSN_MASK);
    if (!right)
        printf("# got: opcode 0x%02x, syndrome 0x%02x, PSN %u, MSN %u; not syndrome 0x%02x, PSN %u, MSN %u\n", p.opcode,
               p.aeth.syndrome, p.psn, p.aeth.msn, syndrome, psn & PSN_MASK, msn & PSN_MASK);
    return right;
}

#endif
