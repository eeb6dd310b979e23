// SPDX-License-Identifier: BSD-2-Clause
/* The general service interface of a device, QP 1 (IBA 13.5): datagrams of 256 bytes without connection. The engine
 * sends what its owner gives it, and keeps what it receives until the owner takes it. It does not look into MADs. A
 * received MAD has the right Q_Key, P_Key, source QP and length. */
#ifndef PUMICE_DAEMON_CORE_PATH_GSI_H
#define PUMICE_DAEMON_CORE_PATH_GSI_H

#include "daemon/core/base/config.h"
#include "daemon/core/base/rx_meta.h"
#include "daemon/core/base/tx_batch.h"
#include "wire/mad.h"

#define GSI_SLOTS 256u /* MADs of each direction that wait; further ones are dropped */

struct gsi_mad {
    struct av av; /* out: where to; in: where it came from, with the index of the own address that it came to */
    uint8_t dgid[16]; /* in: the own address that it came to */
    uint8_t data[MAD_LEN];
};
struct gsi {
    struct gsi_mad
        out[2 * GSI_SLOTS]; /* a ring; twice as many, because a batch still points to the av of those in it */
    uint32_t out_head, out_tail;
    struct gsi_mad in[GSI_SLOTS]; /* a ring */
    uint32_t in_head, in_tail;
    uint64_t dropped; /* received MADs without room */
};

/* Takes in a packet for QP 1. False: it is no MAD for this device. */
bool gsi_rx(struct gsi *g, const struct engine_config *cfg, const struct pkt *p, const struct rx_meta *meta);
/* Appends the MADs that wait. False: the batch is full. */
bool gsi_tx(struct gsi *g, struct tx_batch *b);
/* -EAGAIN: too many wait to be sent. -EINVAL: no such sgid_index, or a multicast group. */
int gsi_send(struct gsi *g, const struct engine_config *cfg, const struct av *av, const uint8_t mad[MAD_LEN]);
/* Takes the oldest received MAD. False: there is none. */
bool gsi_pop(struct gsi *g, struct gsi_mad *out);

#endif
