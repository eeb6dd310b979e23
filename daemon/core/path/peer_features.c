// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/peer_features.h"

#define WAIT_NS 200000u /* for the answer to the first probe; it doubles with each further one */
#define TRIES 8u /* probes without an answer, after which the device has no features */
#define ANSWER_NS 10000000000u /* so long an answer is believed without another probe … */
#define SILENCE_NS 60000000000u /* … and so long a device that did not answer is left in peace */

bool peer_features_should_ask(struct peer_features *f, uint64_t now)
{
    if (f->known && now - f->known_at < (f->sacks ? ANSWER_NS : SILENCE_NS))
        return false;
    if (f->tries && now - f->asked_at < (uint64_t)WAIT_NS << (f->tries - 1))
        return false;
    if (f->tries < TRIES)
        return true;
    *f = (struct peer_features){.known = true, .known_at = now};
    return false;
}

void peer_features_asked(struct peer_features *f, uint64_t token, uint64_t now)
{
    f->token = token;
    f->asked_at = now;
    f->tries++;
}

void peer_features_answered(struct peer_features *f, const struct probe *answer, uint64_t now)
{
    if (f->tries == 0 || answer->token != f->token)
        return;
    *f = (struct peer_features){.sacks = answer->sacks, .known = true, .known_at = now};
}
