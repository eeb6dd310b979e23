// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/unkind/poll_size.h"

static uint64_t next_draw(const struct vb_cq *cq)
{
    return unkind_draw(vb_ctx(cq->cq.context)->caps.unkind_seed, UNKIND_POLLS, cq->cq.handle, cq->consumer);
}

int vb_unkind_poll_size(const struct vb_cq *cq, int num)
{
    uint64_t draw = next_draw(cq);
    return num > 1 && draw % 2 ? 1 + (int)((draw >> 8) % (uint64_t)num) : num;
}

bool vb_unkind_goes_on(const struct vb_cq *cq)
{
    return next_draw(cq) % 2;
}
