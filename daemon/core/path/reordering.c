// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/reordering.h"

#define STEP_PART 4u /* the window grows by this part of the round trip */
#define SLACK_PART 4u /* the window is longer than the latest packet was late, by this part */
#define FADE_PART 64u /* it becomes shorter by this part of what it is too long */
#define IN_VAIN_MOST 16u /* so often the window may be a round trip in vain, … */
#define REST_ROUNDS 1024u /* … before it is zero for so many round trips */
#define LOSSES_MOST 16u /* after so many losses without a late packet, nothing is reordered any more (as in RFC 8985) */

void reordering_late(struct reordering *r, uint64_t ns)
{
    uint64_t wanted = ns + ns / SLACK_PART;
    r->losses = 0;
    if (r->in_vain)
        r->in_vain--;
    if (r->window)
        r->window = wanted > r->window ? wanted : r->window - (r->window - wanted) / FADE_PART;
}

static void rest(struct reordering *r, uint64_t srtt, uint64_t now)
{
    r->window = 0;
    r->in_vain = 0;
    r->rests_until = now + REST_ROUNDS * srtt;
}

void reordering_unneeded(struct reordering *r, uint64_t srtt, uint64_t now)
{
    r->losses = 0;
    if (now < r->rests_until || now - r->grown_at < srtt)
        return;
    r->grown_at = now;
    if (r->window == 0 || r->window < srtt)
        r->window += srtt / STEP_PART;
    else if (++r->in_vain == IN_VAIN_MOST)
        rest(r, srtt, now);
}

void reordering_loss(struct reordering *r)
{
    if (r->window == 0 || ++r->losses < LOSSES_MOST)
        return;
    r->window = 0;
    r->losses = 0;
}

void reordering_no_room(struct reordering *r, uint64_t srtt, uint64_t now)
{
    if (r->window)
        rest(r, srtt, now);
}
