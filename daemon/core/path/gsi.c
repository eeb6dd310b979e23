// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/gsi.h"

#include <errno.h>
#include <string.h>

#include "wire/gid.h"

size_t gsi_size(void)
{
    return (GSI_OUT_SLOTS + GSI_SLOTS) * sizeof(struct gsi_mad);
}

void gsi_init(struct gsi *g, const struct engine_config *cfg, struct engine_counters *counters, void *mem)
{
    *g = (struct gsi){.cfg = cfg, .counters = counters, .out = mem};
    g->in = g->out + GSI_OUT_SLOTS;
}

/* --- receiving -------------------------------------------------------------------------------- */

/* An entry of the GID table that is all zeros is empty. */
static bool is_empty(const uint8_t gid[16])
{
    static const uint8_t none[16];
    return memcmp(gid, none, sizeof(none)) == 0;
}

/* The index of one of the device's addresses, or -1. */
static int address_index(const struct engine_config *cfg, const uint8_t gid[16])
{
    for (int i = 0; i < cfg->num_gids; i++)
        if (memcmp(cfg->gids[i], gid, 16) == 0)
            return i;
    return -1;
}

/* Is it a datagram of MAD_LEN bytes between two QPs 1? */
static bool is_mad(const struct pkt *p)
{
    return p->opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p->payload_len == MAD_LEN && p->deth.src_qpn == MAD_QPN;
}

/* Only unicast packets have a sender that can be answered. */
static bool is_for_device(const struct gsi *g, const struct rx_meta *meta)
{
    return !gid_is_multicast(meta->src_gid) && !is_empty(meta->src_gid) && !is_empty(meta->dst_gid) &&
           address_index(g->cfg, meta->dst_gid) >= 0;
}

static void keep(struct gsi *g, const struct pkt *p, const struct rx_meta *meta)
{
    struct gsi_mad *m = &g->in[g->in_tail++ % GSI_SLOTS];
    m->av = (struct av){.sgid_index = (uint8_t)address_index(g->cfg, meta->dst_gid),
                        .traffic_class = meta->traffic_class,
                        .hop_limit = meta->hop_limit};
    memcpy(m->av.dgid, meta->src_gid, sizeof(m->av.dgid));
    memcpy(m->dgid, meta->dst_gid, sizeof(m->dgid));
    memcpy(m->data, p->payload, MAD_LEN);
}

bool gsi_rx(struct gsi *g, const struct pkt *p, const struct rx_meta *meta, enum drop_cause *cause)
{
    if (!is_mad(p) || !is_for_device(g, meta)) {
        *cause = DROP_UNKNOWN_QP;
        return false;
    }
    if (!pkey_matches(p->pkey)) {
        *cause = DROP_PKEY;
        return false;
    }
    if (p->deth.qkey != MAD_QKEY) {
        *cause = DROP_QKEY;
        return false;
    }
    if (g->in_tail - g->in_head == GSI_SLOTS) {
        g->counters->gsi_mads_dropped++;
        return true;
    }
    g->counters->gsi_mads_rcvd++;
    keep(g, p, meta);
    return true;
}

bool gsi_pop(struct gsi *g, struct gsi_mad *out)
{
    if (g->in_head == g->in_tail)
        return false;
    *out = g->in[g->in_head++ % GSI_SLOTS];
    return true;
}

/* --- sending ---------------------------------------------------------------------------------- */

int gsi_send(struct gsi *g, const struct av *av, const uint8_t mad[MAD_LEN])
{
    if (av->sgid_index >= g->cfg->num_gids || is_empty(g->cfg->gids[av->sgid_index]) || is_empty(av->dgid) ||
        gid_is_multicast(av->dgid))
        return -EINVAL;
    if (g->out_tail - g->out_head == GSI_SLOTS) {
        g->counters->gsi_mads_dropped++;
        return -EAGAIN;
    }
    struct gsi_mad *m = &g->out[g->out_tail++ % GSI_OUT_SLOTS];
    m->av = *av;
    memcpy(m->data, mad, MAD_LEN);
    return 0;
}

bool gsi_tx(struct gsi *g, struct tx_batch *b)
{
    for (unsigned n = 0; n < GSI_BURST && g->out_head != g->out_tail; n++) {
        const struct gsi_mad *m = &g->out[g->out_head % GSI_OUT_SLOTS];
        struct pkt p = {
            .opcode = OP_SERVICE_UD | OP_SEND_ONLY,
            .migreq = true,
            .pkey = PKEY_DEFAULT,
            .dest_qpn = MAD_QPN,
            .psn = g->psn & PSN_MASK,
            .deth = {.qkey = MAD_QKEY, .src_qpn = MAD_QPN},
        };
        uint8_t *payload;
        if (!tx_append(b, &p, &m->av, MAD_QPN, MAD_LEN, &payload))
            return false;
        memcpy(payload, m->data, MAD_LEN);
        g->psn++;
        g->out_head++;
        g->counters->gsi_mads_sent++;
    }
    return true;
}
