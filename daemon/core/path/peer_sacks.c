// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/peer_sacks.h"

#include <string.h>

#define TOKEN_TWEAK 0xffffff00u /* of the permutations for tokens; those for other numbers have lower tweaks */

/* A number that nobody can guess who can't see the probe. */
static uint64_t make_token(const struct datagram_flow_table *t, uint32_t sequence)
{
    uint64_t token = 0;
    for (uint32_t part = 0; part < 3; part++)
        token = token << 24 | permute(&t->cfg->number_secret, TOKEN_TWEAK + part, 24, sequence & 0xffffff);
    return token;
}

static bool is_own_address(const struct engine_config *cfg, const uint8_t gid[16])
{
    for (unsigned i = 0; i < cfg->num_gids; i++)
        if (memcmp(cfg->gids[i], gid, 16) == 0)
            return true;
    return false;
}

bool peer_takes_sacks(struct datagram_flow_table *t, struct peer_window *p, const struct av *av, bool like_pumice,
                      uint64_t now)
{
    if (!t->cfg->selective || !p)
        return false;
    if (t->cfg->selective_assumed || is_own_address(t->cfg, av->dgid))
        return true;
    if (memcmp(p->gid, av->dgid, sizeof(p->gid)) != 0)
        return false; /* several addresses share the entry */
    if (like_pumice && peer_features_should_ask(&p->features, now)) {
        uint32_t sequence = t->sequence + 1;
        uint64_t token = make_token(t, sequence);
        if (datagram_flow_ask_features(t, av, sequence, token) == 0) {
            t->sequence = sequence;
            peer_features_asked(&p->features, token, now);
        }
    }
    return p->features.sacks;
}
