// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/poll_brief.h"

#include "src/verbs/base/poll_crowd.h"

static bool soon_after(uint64_t before, uint64_t end)
{
    return end != 0 && before < end + VB_POLL_BRIEF_AGAIN_NS;
}

static void note_slow(struct vb_poll_brief *b, uint64_t before, uint64_t after)
{
    if (b->many)
        return;
    bool second = soon_after(before, b->slow_at);

    b->slow_at = after;
    if (soon_after(before, b->until))
        b->length = vb_poll_doubled(b->length, VB_POLL_BRIEF_MAX_NS);
    else if (second)
        b->length = VB_POLL_BRIEF_MIN_NS;
    else
        return;
    b->until = after + b->length;
}

static void note_average(struct vb_poll_brief *b, uint64_t took, uint64_t now)
{
    b->sum += took;
    if (++b->yields < VB_POLL_BRIEF_YIELDS)
        return;
    if (b->sum < VB_POLL_BRIEF_YIELDS * VB_POLL_BRIEF_YIELD_NS)
        b->until = now;
    b->sum = b->yields = 0;
}

void vb_poll_brief_yielded(struct vb_poll_brief *b, uint64_t before, uint64_t after)
{
    if (after - before > vb_poll_slow_yield_ns(b->yield_ns))
        note_slow(b, before, after);
    if (vb_poll_is_brief(b, after))
        note_average(b, after - before, after);
    else
        b->sum = b->yields = 0;
}

void vb_poll_brief_waited(struct vb_poll_brief *b, uint64_t due, uint64_t after)
{
    if (after > due + vb_poll_slow_yield_ns(b->yield_ns))
        note_slow(b, due, after);
}
