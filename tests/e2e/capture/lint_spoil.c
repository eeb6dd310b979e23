// SPDX-License-Identifier: BSD-2-Clause
#include "tests/e2e/capture/lint_spoil.h"

#include <string.h>

#include "wire/pumice/sack.h"

void flip_icrc(struct scene_draft *d)
{
    d->icrc_flip = 0x80;
}

void tver(struct scene_draft *d)
{
    d->p.tver = 1;
}

void no_such_opcode(struct scene_draft *d)
{
    d->p.opcode = 0x1f;
}

void pkey(struct scene_draft *d)
{
    d->p.pkey = 0x1234;
}

void pad_byte(struct scene_draft *d)
{
    d->pad_byte = 1;
}

void cut_headers(struct scene_draft *d)
{
    d->cut = 4;
}

void pad_in_read(struct scene_draft *d)
{
    d->pad_skew = 1;
}

void shorter(struct scene_draft *d)
{
    d->len -= 8;
}

void longer(struct scene_draft *d)
{
    d->len += 8;
}

void half_mtu(struct scene_draft *d)
{
    d->len *= 2;
}

void no_becn(struct scene_draft *d)
{
    d->p.becn = false;
}

void cnp_content(struct scene_draft *d)
{
    d->payload[3] = 1;
}

void syndrome_reserved(struct scene_draft *d)
{
    d->p.aeth.syndrome = 0x40;
}

void syndrome_nak(struct scene_draft *d)
{
    d->p.aeth.syndrome = NAK_INVALID_REQUEST;
}

void leave_out(struct scene_draft *d)
{
    d->copies = 0;
}

void srqn(struct scene_draft *d)
{
    d->p.srqn++;
}

void to_write(struct scene_draft *d)
{
    d->p.opcode = OP_WRITE_MIDDLE;
}

void to_only(struct scene_draft *d)
{
    d->p.opcode = OP_SEND_ONLY;
}

void reth_length(struct scene_draft *d)
{
    d->p.reth.length += 1;
}

void future(struct scene_draft *d)
{
    d->p.psn = (d->p.psn + 100) & PSN_MASK;
}

void msn_more(struct scene_draft *d)
{
    d->p.aeth.msn++;
}

void msn_less(struct scene_draft *d)
{
    d->p.aeth.msn--;
}

void to_atomic_ack(struct scene_draft *d)
{
    d->p.opcode = OP_ATOMIC_ACK;
}

void to_read_response(struct scene_draft *d)
{
    d->p.opcode = OP_READ_RESP_ONLY;
}

void to_middle(struct scene_draft *d)
{
    d->p.opcode = OP_READ_RESP_MIDDLE;
}

void to_response_only(struct scene_draft *d)
{
    d->p.opcode = OP_READ_RESP_ONLY;
}

void tmh_tag(struct scene_draft *d)
{
    d->payload[15] ^= 1;
}

void tmh_reserved(struct scene_draft *d)
{
    d->payload[1] ^= 1;
}

void rvh_len(struct scene_draft *d)
{
    d->payload[31] ^= 1;
}

void tmh_opcode(struct scene_draft *d)
{
    d->payload[0] = 77;
}

void tmh_only(struct scene_draft *d)
{
    d->len = TMH_LEN;
}

void to_fin(struct scene_draft *d)
{
    d->payload[0] = TMH_FIN;
}

void read_key(struct scene_draft *d)
{
    d->p.reth.rkey++;
}

/* The XRCETH left out: what follows the BTH is the message. */
void no_xrceth(struct scene_draft *d)
{
    d->p.srqn = 0;
    d->reserved = 0x80;
}

void big(struct scene_draft *d)
{
    d->len = 2 * SCENE_MTU;
}

void to_eager(struct scene_draft *d)
{
    d->payload[0] = TMH_EAGER;
}

void no_gaps(struct scene_draft *d)
{
    d->payload[5] = 0;
    d->len = SACK_HEAD;
}

/* The second gap begins where the first one ends. */
void gaps_touch(struct scene_draft *d)
{
    memcpy(d->payload + SACK_HEAD + SACK_GAP, (uint8_t[]){0, 0, 1}, 3);
}
