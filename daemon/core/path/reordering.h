// SPDX-License-Identifier: BSD-2-Clause
/* How late packets come on the path to a destination that does not keep their order. A packet that a selective
 * acknowledgement reports as missing counts as lost only after this time: the reordering window, as in RACK (RFC 8985).
 *
 *     none      As long as a path keeps the order, the window is zero: lost packets are sent again at once.
 *     grows     If the peer says that a packet came twice, the first one was only late. The window grows by a part of the
 *               round trip, once per round trip. It is never longer than a round trip: the tail probe comes soon after that.
 *     follows   If a packet comes within the window, it shows how late packets are. The window follows.
 *     ends      After some losses without any late packet, the window is zero again. It is zero for a while, too, if packets
 *               are often later than a round trip, or if the peer can't keep what comes meanwhile. Then it is better to
 *               send them again than to wait. */
#ifndef PUMICE_DAEMON_CORE_PATH_REORDERING_H
#define PUMICE_DAEMON_CORE_PATH_REORDERING_H

#include <stdbool.h>
#include <stdint.h>

struct reordering {
    uint64_t window; /* ns */
    uint64_t grown_at; /* when packets last came twice, ns */
    uint64_t rests_until; /* the window stays zero until this time, ns */
    uint8_t losses; /* reports of lost packets since a packet was late */
    /* How often packets came twice although the window is a round trip. Each packet that was only late takes one off. */
    uint8_t in_vain;
};

/* The time after which a missing packet counts as lost, ns. srtt: the round trip. */
static inline uint64_t reordering_window(const struct reordering *r, uint64_t srtt)
{
    return r->window < srtt ? r->window : srtt;
}
/* A missing packet came by itself, `ns` after it was first reported. */
void reordering_late(struct reordering *r, uint64_t ns);
/* Packets were sent again, although the first ones were only late. */
void reordering_unneeded(struct reordering *r, uint64_t srtt, uint64_t now);
/* The peer has no room for packets behind a missing one. */
void reordering_no_room(struct reordering *r, uint64_t srtt, uint64_t now);
/* Missing packets did not come within the window. */
void reordering_loss(struct reordering *r);

#endif
