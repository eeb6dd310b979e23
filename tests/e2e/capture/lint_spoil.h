// SPDX-License-Identifier: BSD-2-Clause
/* The faults of one packet, for lint_gen.c: each function changes the draft of a packet so that it breaks one rule of the linter. */
#ifndef PUMICE_TESTS_E2E_CAPTURE_LINT_SPOIL_H
#define PUMICE_TESTS_E2E_CAPTURE_LINT_SPOIL_H

#include "tests/e2e/capture/scene.h"

void flip_icrc(struct scene_draft *d);
void tver(struct scene_draft *d);
void no_such_opcode(struct scene_draft *d);
void pkey(struct scene_draft *d);
void pad_byte(struct scene_draft *d);
void cut_headers(struct scene_draft *d);
void pad_in_read(struct scene_draft *d);
void shorter(struct scene_draft *d);
void longer(struct scene_draft *d);
void half_mtu(struct scene_draft *d);
void no_becn(struct scene_draft *d);
void cnp_content(struct scene_draft *d);
void syndrome_reserved(struct scene_draft *d);
void syndrome_nak(struct scene_draft *d);
void leave_out(struct scene_draft *d);
void srqn(struct scene_draft *d);
void to_write(struct scene_draft *d);
void to_only(struct scene_draft *d);
void reth_length(struct scene_draft *d);
void future(struct scene_draft *d);
void msn_more(struct scene_draft *d);
void msn_less(struct scene_draft *d);
void to_atomic_ack(struct scene_draft *d);
void to_read_response(struct scene_draft *d);
void to_middle(struct scene_draft *d);
void to_response_only(struct scene_draft *d);
void tmh_tag(struct scene_draft *d);
void tmh_reserved(struct scene_draft *d);
void rvh_len(struct scene_draft *d);
void tmh_opcode(struct scene_draft *d);
void tmh_only(struct scene_draft *d);
void to_fin(struct scene_draft *d);
void read_key(struct scene_draft *d);
void no_xrceth(struct scene_draft *d);
void big(struct scene_draft *d);
void to_eager(struct scene_draft *d);
void no_gaps(struct scene_draft *d);
void gaps_touch(struct scene_draft *d);

#endif
