// SPDX-License-Identifier: BSD-2-Clause
/* Conversations for captures: two ends, A and B, each with a QP, whose packets are written to a pcapng file one after
 * the other with right PSNs, MSNs and ICRCs. A packet can be labelled, and a scene can be told to spoil the packet of a
 * given label: that is how the tests of the linter come by captures with exactly one fault. */
#ifndef PUMICE_TESTS_SCENE_H
#define PUMICE_TESTS_SCENE_H

#include "pcap/capfile.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"
#include "wire/tmh.h"

#define SCENE_MTU 256 /* the path MTU of all scenes */
#define SCENE_QPN_A 0x11u
#define SCENE_QPN_B 0x22u

enum { A, B }; /* the ends */

/* A packet that is about to be written; a spoiler may change all of it. */
struct scene_draft {
    struct pkt p; /* pad, payload_len and payload are made from what follows */
    uint8_t payload[8192];
    uint32_t len; /* bytes of payload */
    uint8_t pad_byte; /* what the pad is made of: 0 */
    int pad_skew; /* added to the right pad count */
    uint32_t icrc_flip; /* bits of the ICRC to be flipped */
    uint8_t reserved; /* or-ed into the first byte after the BTH: reserved bits of an XRCETH */
    unsigned copies; /* 1; 0: the packet is not in the capture */
    int cut; /* bytes to leave out of the UDP payload's end before the ICRC */
};

struct scene {
    struct capfile file;
    bool is_v6;
    enum { NOWHERE, AT_A, AT_B } seen; /* where it is captured, if the capture says so by directions */
    bool noted; /* captured where it leaves, with comments (note.h) that name the QP instead of labels */
    uint64_t now; /* ns */
    uint32_t psn[2]; /* next PSN of requests of each end */
    uint32_t msn[2]; /* messages completed by each end as responder */
    uint32_t qpn[2];
    uint8_t service; /* enum op_service of all that follows */
    uint32_t srqn; /* in the XRCETH of requests */
    uint16_t ip_id;
    const char *spoil; /* label of the packet to be spoilt; NULL: none */
    void (*spoiler)(struct scene_draft *d);
    unsigned spoilt; /* how many packets were */
};

/* Opens path with one interface, and sets the defaults. 0 or -errno. */
int scene_open(struct scene *s, const char *path);

/* 0 or -errno, also of anything that went wrong before. */
int scene_close(struct scene *s);

/* The general form: fields of p that are 0 get the right values: QPN of the other end, P_Key, MigReq. A step of time
 * passes first. payload may be NULL: a pattern then. */
void scene_put(struct scene *s, const char *label, int from, struct pkt p, const void *payload, uint32_t len);

/* A request packet of one PSN from an end: operation (or-ed with the scene's service), AckReq for LAST and ONLY. Returns its PSN. */
uint32_t scene_request(struct scene *s, const char *label, int from, uint8_t op, const void *payload, uint32_t len);

/* Likewise with the headers of p: for RETH, AtomicETH, FETH, ImmDt, IETH. */
uint32_t scene_request_of(struct scene *s, const char *label, int from, uint8_t op, struct pkt p, const void *payload,
                          uint32_t len);

/* READ request of len bytes; takes as many PSNs as there will be responses. Returns the first. */
uint32_t scene_read(struct scene *s, const char *label, int from, uint64_t va, uint32_t rkey, uint32_t len);

/* All responses to a READ, from an end. first.label, middle.label, last.label or only.label are their labels. */
void scene_read_responses(struct scene *s, const char *label, int from, uint32_t psn, uint32_t len);

/* An ACK, NAK or RNR NAK from an end; msn is the end's now. */
void scene_ack(struct scene *s, const char *label, int from, uint32_t psn, uint8_t syndrome);

/* Counts a message as completed at an end, as the responder does before it acknowledges. */
static inline void scene_done(struct scene *s, int at)
{
    s->msn[at]++;
}

/* SEND of one packet from an end, acknowledged. */
void scene_send(struct scene *s, const char *label, int from, const void *payload, uint32_t len);

/* A SEND with a TMH, and an RVH if r isn't NULL, and n more bytes; acknowledged. */
void scene_tm(struct scene *s, const char *label, int from, const struct tmh *t, const struct rvh *r, uint32_t n);

#endif
