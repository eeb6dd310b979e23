// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/pkt_run.h"

#include "daemon/core/base/psn.h"

uint32_t pkt_run_payload_len(const struct pkt_run *r, uint32_t i)
{
    uint32_t left = r->payload_len - i * r->mtu;
    return left < r->mtu ? left : r->mtu;
}

uint8_t pkt_run_opcode(const struct pkt_run *r, uint32_t i)
{
    if (i + 1 == r->n)
        return r->last.opcode;
    return i == 0 ? r->first.opcode : r->middle;
}

void pkt_run_packet(const struct pkt_run *r, uint32_t i, struct pkt *out)
{
    *out = i + 1 == r->n ? r->last : r->first;
    out->opcode = pkt_run_opcode(r, i);
    out->psn = psn_add(r->first.psn, i);
    out->payload = r->payload + (size_t)i * r->mtu;
    out->payload_len = pkt_run_payload_len(r, i);
    out->pad = (uint8_t)pkt_pad(out->payload_len);
}
