// SPDX-License-Identifier: BSD-2-Clause
/* Remembers which features beyond the specification the device at an address has. The engine asks the device by a probe
 * (wire/pumice/probe.h). It asks when a packet of this address is missing for the first time, so paths that lose nothing
 * carry no probe. A device that does not answer counts as one without features. */
#ifndef PUMICE_DAEMON_CORE_PATH_PEER_FEATURES_H
#define PUMICE_DAEMON_CORE_PATH_PEER_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/pumice/probe.h"

struct peer_features {
    bool sacks; /* it understands selective acknowledgements */
    bool known; /* it has answered, or was asked in vain */
    uint8_t tries; /* probes since then without an answer */
    uint64_t asked_at; /* time of the last probe, ns */
    uint64_t known_at; /* time of the last answer, or of giving up, ns */
    uint64_t token; /* of the last probe */
};

/* The features are needed now. Is it time for a probe? The caller then sends one, and calls peer_features_asked. */
bool peer_features_should_ask(struct peer_features *f, uint64_t now);
/* A probe with this token was sent. */
void peer_features_asked(struct peer_features *f, uint64_t token, uint64_t now);
/* An answer came. It is ignored if its token is not that of the last probe. */
void peer_features_answered(struct peer_features *f, const struct probe *answer, uint64_t now);

#endif
