// SPDX-License-Identifier: BSD-2-Clause
/* Finds out whether a peer is a Pumice daemon. A Pumice daemon sends all its packets from UDP port 4791, and writes the IP
 * ID that the ICRC covers into the packet (bth_icrc_id). NICs and soft-RoCE do neither. So packets from another port, or
 * whose ICRC is right for another ID, can't come from a Pumice daemon: they are forged or damaged. Other processes on the
 * host of the peer can send from its address, but not from the port that the daemon has bound.
 *
 * Nothing is sent as long as all packets of a peer look like those of a Pumice daemon. The first one that does not makes
 * the device send a probe with a random token (wire/pumice/probe.h). Only a Pumice daemon answers:
 *
 *     no answer yet    Packets from other ports are accepted, because they may be those of a NIC. Packets with another
 *                      ID are dropped: very likely one is damaged, and a sender that is no Pumice daemon repeats it.
 *     an answer        Both are dropped from now on. A later one repeats the probe, because the host may run another
 *                      stack one day. A daemon that does not write the ID says so in its answer; then the 64 IDs of a
 *                      GSO send are accepted.
 *     no answer after several tries    Both are accepted. The device asks again after a minute.
 *
 * Peers are the addresses that QPs are connected to, or send to. The senders of other packets are strangers: a datagram
 * QP may only receive from them. They have a table of their own, so they can't use up that of the peers. Only a few new
 * strangers are asked in a second, because their addresses may be forged. Until it answers, or if it is not asked, a
 * stranger counts as PEER_OTHER. */
#ifndef PUMICE_DAEMON_MONITOR_PEER_IDENTITY_H
#define PUMICE_DAEMON_MONITOR_PEER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/device.h"

enum peer_kind {
    PEER_UNKNOWN, /* was asked, and has not answered yet */
    PEER_PUMICE,
    PEER_PUMICE_OLD, /* a daemon whose packets don't have their bth_icrc_id */
    PEER_OTHER, /* does not answer, or is a stranger that has not answered yet */
};

static inline bool peer_is_pumice(enum peer_kind kind)
{
    return kind == PEER_PUMICE || kind == PEER_PUMICE_OLD;
}

/* A packet that no Pumice daemon sends came from this address. Returns what is known of the peer, and asks it if that
 * is not known or is old. */
enum peer_kind peer_identity_check(struct device *d, const uint8_t gid[16], uint64_t now);
/* An answer to a probe came. True: the probe was one of this module. */
bool peer_identity_answer(struct device *d, const struct check *answer, uint64_t now);
void peer_identity_fini(struct device *d);

#endif
