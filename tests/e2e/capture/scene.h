// SPDX-License-Identifier: BSD-2-Clause
/* Conversations for captures. Two ends, A and B, each have a QP. Their packets are written to a pcapng file one after
 * the other, with right PSNs, MSNs and ICRCs. A packet can have a label, and a scene can spoil the packet with a
 * given label. So the tests of the linter get captures with exactly one fault. */
#ifndef PUMICE_TESTS_E2E_CAPTURE_SCENE_H
#define PUMICE_TESTS_E2E_CAPTURE_SCENE_H

#include "pcap/capfile.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"
#include "wire/tmh.h"

#define SCENE_MTU 256 /* path MTU of all scenes */
#define SCENE_QPN_A 0x11u
#define SCENE_QPN_B 0x22u

enum { A, B }; /* the ends */

/* A packet that is about to be written. A spoiler may change all of it. */
struct scene_draft {
    struct pkt p; /* pad, payload_len and payload are computed from the following fields */
    uint8_t payload[8192];
    uint32_t len; /* bytes of payload */
    uint8_t pad_byte; /* value of the pad bytes: 0 */
    int pad_skew; /* added to the right pad count */
    uint32_t icrc_flip; /* bits of the ICRC to flip */
    /* OR-ed into the first byte after the BTH: the reserved bits of an XRCETH. */
    uint8_t reserved;
    unsigned copies; /* 1; 0: the packet is not in the capture */
    /* Number of bytes to leave out before the ICRC. */
    int cut;
};

struct scene {
    struct capfile file;
    bool is_v6;
    /* Where the packet is captured, if the capture records directions. */
    enum { NOWHERE, AT_A, AT_B } seen;
    /* Captured at the sender, with comments (note.h) that name the QP instead of labels. */
    bool noted;
    uint64_t now; /* ns */
    uint32_t psn[2]; /* next PSN of the requests of each end */
    uint32_t msn[2]; /* messages that each end has completed as responder */
    uint32_t qpn[2];
    uint8_t service; /* enum op_service of the following packets */
    uint32_t srqn; /* in the XRCETH of requests */
    uint16_t ip_id;
    const char *spoil; /* label of the packet to spoil; NULL: none */
    void (*spoiler)(struct scene_draft *d);
    unsigned spoilt; /* number of spoilt packets */
};

/* Opens path with one interface, and sets the defaults. Returns 0 or -errno. */
int scene_open(struct scene *s, const char *path);

/* Returns 0 or -errno, also for any earlier error. */
int scene_close(struct scene *s);

/* The general form. Fields of p that are 0 get the right values: QPN of the other end, P_Key, MigReq. A step of time
 * passes first. payload may be NULL: then it is a pattern. */
void scene_put(struct scene *s, const char *label, int from, struct pkt p, const void *payload, uint32_t len);

/* Writes a request packet of one PSN from an end: operation (OR-ed with the scene's service), AckReq for LAST and
 * ONLY. Returns its PSN. */
uint32_t scene_request(struct scene *s, const char *label, int from, uint8_t op, const void *payload, uint32_t len);

/* As scene_request, with the headers of p: for RETH, AtomicETH, FETH, ImmDt, IETH. */
uint32_t scene_request_of(struct scene *s, const char *label, int from, uint8_t op, struct pkt p, const void *payload,
                          uint32_t len);

/* Writes a READ request of len bytes. It takes as many PSNs as there will be responses. Returns the first PSN. */
uint32_t scene_read(struct scene *s, const char *label, int from, uint64_t va, uint32_t rkey, uint32_t len);

/* Writes all responses to a READ, from an end. Their labels are first.label, middle.label, last.label or only.label. */
void scene_read_responses(struct scene *s, const char *label, int from, uint32_t psn, uint32_t len);

/* Writes an ACK, NAK or RNR NAK from an end, with the end's current MSN. */
void scene_ack(struct scene *s, const char *label, int from, uint32_t psn, uint8_t syndrome);

/* Counts a message as completed at an end, as the responder does before it acknowledges. */
static inline void scene_done(struct scene *s, int at)
{
    s->msn[at]++;
}

/* Writes a SEND of one packet from an end, and its ACK. */
void scene_send(struct scene *s, const char *label, int from, const void *payload, uint32_t len);

/* Writes a SEND with a TMH, an RVH if r is not NULL, and n more bytes, and its ACK. */
void scene_tm(struct scene *s, const char *label, int from, const struct tmh *t, const struct rvh *r, uint32_t n);

#endif
