// SPDX-License-Identifier: BSD-2-Clause
#include "tests/e2e/capture/lint_sacks.h"

#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

/* B reports that the PSNs of the gaps are missing, and that everything else from the first gap up to `end` has come. */
static void report(struct scene *s, const char *label, const struct sack_gap *gap, uint32_t gaps, uint32_t end)
{
    struct sack x = {.requester = s->qpn[A], .responder = s->qpn[B], .end = end & PSN_MASK, .newest = end & PSN_MASK};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN}};
    uint8_t payload[SACK_LEN_MOST];

    for (x.gaps = 0; x.gaps < gaps; x.gaps++)
        x.gap[x.gaps] = (struct sack_gap){gap[x.gaps].start & PSN_MASK, gap[x.gaps].end & PSN_MASK};
    x.expected = x.gap[0].start;
    sack_encode(&x, payload);
    scene_put(s, label, B, p, payload, sack_len(&x));
}

/* A sends six SENDs, of which the second and the fourth do not come to the place of the capture. B reports the gaps. A
 * sends these two again, and B acknowledges all. */
static void six_sends(struct scene *s, const struct sack_gap *gap, uint32_t gaps, uint32_t end)
{
    uint32_t first = s->psn[A];
    struct sack_gap from_here[2];

    for (unsigned i = 0; i < 6; i++) {
        if (i == 1 || i == 3)
            s->psn[A]++;
        else
            scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
        scene_done(s, B);
    }
    for (uint32_t i = 0; i < gaps; i++)
        from_here[i] = (struct sack_gap){first + gap[i].start, first + gap[i].end};
    report(s, "sack", from_here, gaps, first + end);
    for (unsigned i = 1; i <= 3; i += 2) {
        s->psn[A] = first + i;
        scene_request(s, NULL, A, OP_SEND_ONLY, NULL, 12);
    }
    s->psn[A] = first + 6;
    scene_ack(s, NULL, B, first + 5, AETH_NO_CREDITS);
}

void sack_right(struct scene *s)
{
    six_sends(s, (struct sack_gap[]){{1, 2}, {3, 4}}, 2, 6);
}

void sack_unsent(struct scene *s)
{
    six_sends(s, (struct sack_gap[]){{1, 2}, {3, 4}}, 2, 7);
}

void sack_unseen(struct scene *s)
{
    six_sends(s, (struct sack_gap[]){{1, 2}}, 1, 6);
}

void sack_back(struct scene *s)
{
    uint32_t psn = s->psn[A];

    scene_send(s, NULL, A, NULL, 12);
    scene_send(s, NULL, A, NULL, 12);
    report(s, NULL, &(struct sack_gap){psn, psn + 1}, 1, psn + 2);
}

void sack_alone(struct scene *s)
{
    s->qpn[B] = 0x377;
    report(s, NULL, &(struct sack_gap){1, 2}, 1, 3);
}
