// SPDX-License-Identifier: BSD-2-Clause
/* The configuration of an engine: limits, sizes and times. During the engine's life only the GIDs change
 * (engine_set_gid). */
#ifndef PUMICE_DAEMON_CORE_BASE_CONFIG_H
#define PUMICE_DAEMON_CORE_BASE_CONFIG_H

#include "daemon/core/base/permute.h"
#include "daemon/core/base/types.h"

struct engine_config {
    uint32_t max_qp; /* QPs that can exist at once; at most 1 << 20 */
    uint32_t max_mr; /* memory keys that can exist at once, regions and windows together; at most 1 << 22 */
    uint32_t max_srq; /* SRQs that can exist at once; at most 1 << 20 */
    uint32_t max_mcast; /* sum of the members of all multicast groups; at most 1 << 20 */
    uint32_t max_peers; /* distinct destination addresses; beyond that, addresses share one window */
    uint32_t completion_slots; /* of the outgoing completion queue; a power of two, at least 64 */
    /* Slots of the event queue; a power of two. An event that finds no room is dropped, unless its function says
     * otherwise. */
    uint32_t event_slots;
    uint32_t window_pkts; /* packets that a QP may have unacknowledged, at most 1 << 22 */
    uint64_t peer_window_bytes; /* most bytes in flight to one destination: the size of its socket's receive buffer */
    /* The engine answers packets with ECN marks by CNPs, and a CNP lowers a QP's rate. The owner then sends the packets
     * of RC, UC and XRC QPs as ECT(0): the low bits of the IP header's traffic class are 2. */
    bool ecn;
    /* ACKs tell the peer how many receive requests a QP has, and a QP sends no message for which its peer has none (IBA
     * 9.7.7.2). RC QPs without an SRQ. */
    bool e2e_credits;
    uint64_t cnp_interval_ns; /* least time between two CNPs of one QP */
    uint64_t line_rate; /* bytes per second that a QP may send at without a limit: where rates start and end */
    uint64_t flow_wait_ns; /* first wait for the answer to a probe of the datagrams' flow control */
    /* The longest time that a received packet without AckReq stays unacknowledged; 0: no limit. */
    uint64_t ack_delay_ns;
    uint64_t min_timeout_ns; /* lower clamp of the QP's timeout */
    /* QP timeouts shorter than this are stretched to it, but at most to four times their value (IBA 9.7.6.1.3). 0: none
     * is stretched. */
    uint64_t crowd_timeout_ns;
    /* Memory for READs that a later request of their QP must not overtake; see base/read_copies.h. 0: such requests wait. */
    uint32_t read_copy_bytes;
    /* Packets that come before an earlier one are kept, and the peer is told which are missing, if it understands that
     * (wire/pumice/sack.h). Own packets that are reported as missing are sent again alone. */
    bool selective;
    bool selective_assumed; /* for tests: peers are not asked, and all are taken to understand it */
    uint32_t reorder_bytes; /* memory for such packets, of all QPs together; see base/reorder.h */
    uint8_t *reorder_mem; /* so many bytes of the owner, from which it writes faster; NULL: the engine's own memory */
    uint64_t probe_min_ns; /* earliest tail probe after the last progress, however short the round trips are */
    uint64_t first_window_bytes; /* the congestion window of a destination at the start */
    /* The least time without any answer from a destination before its path counts as blocked. Hosts with little processor
     * time may answer late by some milliseconds. */
    uint64_t path_silence_ns;
    uint32_t burst_bytes; /* payload that one QP sends per engine_tx pass while other QPs wait */
    uint32_t max_resends; /* packets that one QP sends again per engine_tx pass while other QPs wait; 0: no own limit */
    uint8_t active_mtu; /* enum ibv_mtu: the largest path_mtu that modify accepts */
    uint32_t first_qpn; /* the first QP number given out, 17 ... 0xfffffe. After 0xfffffe, numbers go on from 17 */
    /* The order of QP numbers, and of the tags that a memory key's index has one after the other. Without a secret both
     * count up from first_qpn and from 0. With one, first_qpn is a place in the order, and users who know some numbers
     * can't tell those of others. */
    struct permute_secret number_secret;
    uint8_t gids[ENGINE_MAX_GIDS][16]; /* own addresses, by sgid_index; all zeros: the entry is empty */
    uint8_t num_gids; /* entries of the table, empty ones included */
};

#endif
