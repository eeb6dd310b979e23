// SPDX-License-Identifier: BSD-2-Clause
/* Counters of a device outside its engine: datagrams, losses at the socket, events without room. Names as in status. */
#ifndef PUMICE_DAEMON_NET_IO_COUNTERS_H
#define PUMICE_DAEMON_NET_IO_COUNTERS_H

#include <stdint.h>

/* X(name, what it counts) */
#define IO_COUNTERS(X)                                                                                                 \
    X(tx_datagrams, "datagrams given to the kernel (a GSO send is one)")                                               \
    X(tx_packets, "RoCEv2 packets in them")                                                                            \
    X(tx_bytes, "bytes in them, BTH to ICRC")                                                                          \
    X(tx_gso_sends, "of the datagrams, those that the kernel was asked to segment")                                    \
    X(tx_multicast, "of the packets, those to multicast groups")                                                       \
    X(tx_again, "times the socket's send buffer was full; nothing is lost by that")                                    \
    X(tx_nobufs, "packets dropped because the kernel's queue was full")                                                \
    X(tx_too_long, "packets dropped because they are longer than the interface's MTU")                                 \
    X(tx_unreachable, "packets dropped because there is no route, or a firewall forbids it")                           \
    X(tx_errors, "packets dropped for other reasons")                                                                  \
    X(tx_bad_peer, "packets dropped: to a QP of this daemon that is connected to another QP")                          \
    X(tx_bad_address, "packets dropped because their source address can't reach the address family of the GID")        \
    X(ack_waits_20us, "ACKs and NAKs that left at most 20 us after they were due")                                     \
    X(ack_waits_100us, "the same: 20 to 100 us")                                                                       \
    X(ack_waits_500us, "the same: 100 to 500 us")                                                                      \
    X(ack_waits_2ms, "the same: 500 us to 2 ms")                                                                       \
    X(ack_waits_long, "the same: more than 2 ms")                                                                      \
    X(ack_wait_us, "sum of these waits, us")                                                                           \
    X(max_ack_wait_us, "longest of these waits, us")                                                                   \
    X(rx_datagrams, "datagrams received (a GRO batch is one)")                                                         \
    X(rx_packets, "RoCEv2 packets in them")                                                                            \
    X(rx_bytes, "bytes in them, BTH to ICRC")                                                                          \
    X(rx_multicast, "of the packets, those to multicast groups")                                                       \
    X(rx_icrc_errors, "packets dropped: wrong ICRC")                                                                   \
    X(rx_malformed, "packets dropped: can't be decoded")                                                               \
    X(rx_not_listed, "packets dropped: their source address is not in the list of peers")                              \
    X(rx_bad_port, "packets dropped: the peer is a Pumice daemon, and they do not come from its UDP port")             \
    X(icmp_unreachable, "ICMP messages: destination, port or network unreachable")                                     \
    X(icmp_too_big, "ICMP messages: packet too big")                                                                   \
    X(icmp_other, "other ICMP messages")                                                                               \
    X(link_downed, "times the interface went down")                                                                    \
    X(loopback_packets, "packets from one QP of the device to another, handed over inside")                            \
    X(fault_queue_full, "delayed packets dropped because too many were waiting")                                       \
    X(net_packets, "packets that passed links of an emulated network")                                                 \
    X(net_dropped, "of these, lost because the queue of a link was full")                                              \
    X(net_marked, "of these, marked with congestion experienced because a queue was long")                             \
    X(cq_overruns, "completion queues that overran")                                                                   \
    X(completions_lost, "completions lost in overrun queues")                                                          \
    X(events_lost, "asynchronous events lost because the client does not read them")                                   \
    X(bad_rings, "QPs failed because their client wrote nonsense to a ring")                                           \
    X(memory_timeouts, "sessions ended because a copy of their memory took longer than memory-timeout")                \
    X(sleeps, "times the loop slept")                                                                                  \
    X(wakes, "times a client that waited for completions was woken")                                                   \
    X(slow_yields, "times a yield took long, so that the loop slept early for a while")

struct io_counters {
#define X(name, text) uint64_t name; /* text */
    IO_COUNTERS(X)
#undef X
};

#endif
