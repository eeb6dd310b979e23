// SPDX-License-Identifier: BSD-2-Clause
/* Messages on their way to the network: a ring of datagrams, which the owner of the instance takes. If the ring is
 * full, a message is lost, as the network could lose it. */
#ifndef PUMICE_DAEMON_CORE_CM_MESSAGE_H
#define PUMICE_DAEMON_CORE_CM_MESSAGE_H

#include "daemon/core/cm/cm_id.h"

/* A message that was received. */
struct received {
    struct cm *cm;
    const struct cm_datagram *d;
    const struct cm_route *route; /* of the device that got it */
    const struct cm_msg *m;
    uint64_t now;
};

/* A message of the ID, with its transaction and communication IDs where the message has them (cm_msg.attribute says
 * which). The caller fills in the rest. */
void message_begin(const struct cm_id *id, uint16_t attribute, struct cm_msg *m);
/* Sends a message to the peer of the ID. */
void message_send(struct cm_id *id, const struct cm_msg *m);
/* The same, and keeps it for message_repeat. */
void message_send_and_keep(struct cm_id *id, const struct cm_msg *m);
/* Sends the kept message again. */
void message_repeat(struct cm_id *id);
/* Sends a message back to where another one came from. */
void message_answer(const struct received *r, const struct cm_msg *m);
/* Rejects a REQ, REP or RTU that belongs to no ID: the communication IDs are those of the sender's message, the other way
 * round. */
void message_answer_reject(const struct received *r, enum cm_reject_reason reason);
/* Is there room for the messages that a timer makes? */
bool message_has_room(const struct cm *cm);

#endif
