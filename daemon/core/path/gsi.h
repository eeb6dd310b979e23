// SPDX-License-Identifier: BSD-2-Clause
/* The general service interface of a device, QP 1 (IBA 13.5): datagrams of 256 bytes without connection. The engine
 * sends what its owner gives it, and keeps what it receives until the owner takes it. It does not look into MADs. A
 * received MAD has the right Q_Key, P_Key, source QP and length. */
#ifndef PUMICE_DAEMON_CORE_PATH_GSI_H
#define PUMICE_DAEMON_CORE_PATH_GSI_H

#include <stddef.h>

#include "daemon/core/base/config.h"
#include "daemon/core/base/report.h"
#include "daemon/core/base/rx_meta.h"
#include "daemon/core/base/tx_batch.h"
#include "wire/mad.h"

#define GSI_SLOTS 256u /* MADs of each direction that wait; further ones are dropped */
#define GSI_OUT_SLOTS (2 * GSI_SLOTS) /* twice as many: a batch still points to the av of the MADs in it */
#define GSI_BURST 16u /* most MADs that one call of gsi_tx appends, so that QPs also have their turn */

struct gsi_mad {
    struct av av; /* out: where to; in: where it came from, with the index of the own address that it came to */
    uint8_t dgid[16]; /* in: the own address that it came to */
    uint8_t data[MAD_LEN];
};
struct gsi {
    const struct engine_config *cfg;
    struct engine_counters *counters;
    struct gsi_mad *out, *in; /* rings of GSI_OUT_SLOTS and GSI_SLOTS */
    uint32_t out_head, out_tail;
    uint32_t in_head, in_tail;
    uint32_t psn; /* of the next MAD */
};

/* Bytes of zeroed memory that gsi_init wants. They are touched only when MADs are sent or received. */
size_t gsi_size(void);
/* cfg and counters are parts of the engine, and stay valid as long as g. */
void gsi_init(struct gsi *g, const struct engine_config *cfg, struct engine_counters *counters, void *mem);

/* Takes in a packet for QP 1. False: it is no MAD for this device; *cause says why. A MAD for which the ring has no
 * room is dropped and counted. */
bool gsi_rx(struct gsi *g, const struct pkt *p, const struct rx_meta *meta, enum drop_cause *cause);
/* Appends the MADs that wait, GSI_BURST of them at most. False: the batch is full. */
bool gsi_tx(struct gsi *g, struct tx_batch *b);
/* -EAGAIN: too many wait to be sent. -EINVAL: no such address of the device, or a multicast group as destination. */
int gsi_send(struct gsi *g, const struct av *av, const uint8_t mad[MAD_LEN]);
/* Takes the oldest received MAD. False: there is none. */
bool gsi_pop(struct gsi *g, struct gsi_mad *out);

#endif
