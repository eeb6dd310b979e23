// SPDX-License-Identifier: BSD-2-Clause
/* Pumice's counters under the names that other systems use, so that their tools find them and their users know them.
 * The systems are soft-RoCE (rxe) and mlx5 (hw_counters), InfiniBand (port counters), and Open MPI's usnic transport
 * (its statistics). */
#ifndef PUMICE_DAEMON_MONITOR_COUNTER_NAMES_H
#define PUMICE_DAEMON_MONITOR_COUNTER_NAMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/engine.h"
#include "daemon/net/io_counters.h"

/* X(name, value from e (struct engine_counters) and io (struct io_counters), what it counts) */
#define RXE_COUNTERS(X)                                                                                                \
    X(sent_pkts, e->sent_pkts, "packets sent")                                                                         \
    X(rcvd_pkts, e->rcvd_pkts, "packets received")                                                                     \
    X(duplicate_request, e->duplicate_request, "requests with a PSN seen before")                                      \
    X(out_of_seq_request, e->out_of_seq_request, "requests with a PSN beyond the expected one")                        \
    X(rcvd_rnr_err, e->rcvd_rnr_err, "RNR NAKs received")                                                              \
    X(send_rnr_err, e->send_rnr_err, "RNR NAKs sent")                                                                  \
    X(rcvd_seq_err, e->rcvd_seq_err, "PSN sequence NAKs received")                                                     \
    X(ack_deferred, e->ack_coalesced, "ACKs that a later ACK covered")                                                 \
    X(retry_exceeded_err, e->retry_exceeded_err, "QPs that ran out of retries")                                        \
    X(retry_rnr_exceeded_err, e->retry_rnr_exceeded_err, "QPs that ran out of RNR retries")                            \
    X(completer_retry_err, e->fast_retrans + e->probe_retrans + e->timeout_retrans, "packets sent again")              \
    X(send_err, io->tx_nobufs + io->tx_too_long + io->tx_unreachable + io->tx_errors + io->tx_bad_address,             \
      "packets that could not be sent")                                                                                \
    X(link_downed, io->link_downed, "times the interface went down")                                                   \
    X(rdma_sends, e->sends, "SEND messages sent")                                                                      \
    X(rdma_recvs, e->recvs, "messages received in a receive request")
/* The mlx5 names that perftest and monitoring tools know. Names that rxe also has are above. */
#define MLX5_COUNTERS(X)                                                                                               \
    X(out_of_sequence, e->out_of_seq_request, "requests with a PSN beyond the expected one")                           \
    X(out_of_buffer, e->send_rnr_err + e->rx_no_recv, "messages that found no receive request")                        \
    X(packet_seq_err, e->rcvd_seq_err, "PSN sequence NAKs received")                                                   \
    X(rnr_nak_retry_err, e->rcvd_rnr_err, "RNR NAKs received")                                                         \
    X(np_ecn_marked_roce_packets, e->np_ecn_marked_roce_packets, "packets received with ECN congestion experienced")   \
    X(np_cnp_sent, e->np_cnp_sent, "congestion notification packets sent")                                             \
    X(rp_cnp_handled, e->rp_cnp_handled, "congestion notification packets received")                                   \
    X(rx_icrc_encapsulated, io->rx_icrc_errors, "packets with a wrong ICRC")
/* The packets that the engine hands out, by class. Control packets of all QPs go before data while there is more to send
 * than fits into a batch. */
#define TX_CLASSES(X)                                                                                                  \
    X(ack, e->acks_sent, "ACKs")                                                                                       \
    X(nak, e->sent_naks, "NAKs")                                                                                       \
    X(cnp, e->np_cnp_sent, "congestion notifications")                                                                 \
    X(probe, e->flow_probes_sent + e->flow_answers_sent + e->sacks_sent,                                               \
      "probes between Pumice devices, answers, SACKs")                                                                 \
    X(mad, e->gsi_mads_sent, "management datagrams of QP 1")                                                           \
    X(response, e->sent_responses, "responses to READs and atomics")                                                   \
    X(retransmission, e->fast_retrans + e->probe_retrans + e->timeout_retrans + e->rnr_retrans,                        \
      "requests that are sent again")                                                                                  \
    X(request,                                                                                                         \
      e->sent_pkts - e->acks_sent - e->sent_naks - e->np_cnp_sent - e->sent_responses - e->fast_retrans -              \
          e->probe_retrans - e->timeout_retrans - e->rnr_retrans,                                                      \
      "requests and data that are sent for the first time")
/* All port counters that Linux shows. A socket knows nothing about errors of the link itself, so these counters are
 * 0. */
#define PORT_COUNTERS(X)                                                                                               \
    X(port_xmit_data, io->tx_bytes / 4, "sent, in units of 4 bytes")                                                   \
    X(port_rcv_data, io->rx_bytes / 4, "received, in units of 4 bytes")                                                \
    X(port_xmit_packets, io->tx_packets, "packets sent")                                                               \
    X(port_rcv_packets, io->rx_packets, "packets received")                                                            \
    X(unicast_xmit_packets, io->tx_packets - io->tx_multicast, "packets sent, to one device")                          \
    X(unicast_rcv_packets, io->rx_packets - io->rx_multicast, "packets received, for this device alone")               \
    X(multicast_xmit_packets, io->tx_multicast, "packets sent to multicast groups")                                    \
    X(multicast_rcv_packets, io->rx_multicast, "packets received as a member of a group")                              \
    X(port_xmit_discards, io->tx_nobufs + io->tx_too_long + io->tx_unreachable + io->tx_errors,                        \
      "packets that could not be sent")                                                                                \
    X(port_xmit_wait, io->tx_again, "times the socket's send buffer was full")                                         \
    X(port_rcv_errors, io->rx_icrc_errors + io->rx_malformed, "packets with a wrong ICRC or form")                     \
    X(link_downed, io->link_downed, "times the interface went down")                                                   \
    X(link_error_recovery, 0, "none")                                                                                  \
    X(symbol_error, 0, "none")                                                                                         \
    X(local_link_integrity_errors, 0, "none")                                                                          \
    X(excessive_buffer_overrun_errors, 0, "none")                                                                      \
    X(port_rcv_remote_physical_errors, 0, "none")                                                                      \
    X(port_rcv_switch_relay_errors, 0, "none")                                                                         \
    X(port_rcv_constraint_errors, 0, "none")                                                                           \
    X(port_xmit_constraint_errors, 0, "none")                                                                          \
    X(VL15_dropped, 0, "none")
/* The statistics of Open MPI's usnic transport. */
#define USNIC_COUNTERS(X)                                                                                              \
    X(total_sends, e->sent_pkts, "packets sent, ACKs and repeated ones included")                                      \
    X(resends, e->fast_retrans + e->probe_retrans + e->timeout_retrans, "packets sent again")                          \
    X(timeout_retrans, e->timeout_retrans + e->probe_retrans, "packets sent again because no answer came in time")     \
    X(fast_retrans, e->fast_retrans, "packets sent again because the peer reported them lost")                         \
    X(ack_sends, e->acks_sent, "ACKs sent")                                                                            \
    X(total_recvs, e->rcvd_pkts, "packets received")                                                                   \
    X(unk_recvs, e->rx_unknown_qp + e->rx_bad_source + e->rx_bad_source_qp + e->rx_bad_destination,                    \
      "packets from unknown senders or for unknown QPs")                                                               \
    X(dup_recvs, e->duplicate_request, "packets received before")                                                      \
    X(oow_low_recvs, e->duplicate_request, "packets before the window")                                                \
    X(oow_high_recvs, e->out_of_seq_request, "packets ahead of the expected one")                                      \
    X(badfrag_recvs, e->rx_bad_opcode + e->rx_refused + io->rx_malformed,                                              \
      "packets with a wrong form or opcode, or refused")                                                               \
    X(ack_recvs, e->acks_rcvd, "ACKs received")                                                                        \
    X(old_dup_acks, e->old_acks, "ACKs of packets that were already acknowledged")                                     \
    X(dup_acks, e->rcvd_seq_err, "sequence NAKs (usnic: repeated ACKs)")                                               \
    X(crc_errors, io->rx_icrc_errors, "packets with a wrong ICRC")                                                     \
    X(max_sent_window_size, e->max_sent_window, "most unacknowledged packets of a QP")                                 \
    X(max_rcvd_window_size, e->max_rcvd_window, "largest distance of a packet ahead of the expected one")

/* Adds the engine's counters under their own names. all: also those that are 0. */
void counter_add_engine(json_t *o, const struct engine_counters *c, bool all);

/* Adds "hw_counters" (those of rxe), "mlx5_counters" and "usnic_counters" to o. If io is not NULL (a whole device,
 * not one QP), adds "port_counters" too. all: also counters that are 0. */
void counter_name_add(json_t *o, const struct engine_counters *e, const struct io_counters *io, bool all);

/* Calls fn for each counter file that sysfs has below ports/1: counters/NAME for InfiniBand's port counters,
 * hw_counters/NAME for all others. */
void counter_name_files(void (*fn)(void *ctx, const char *dir, const char *name), void *ctx);
/* Returns the value of such a file, for example "counters/port_xmit_data". False: there is no counter of that name. */
bool counter_name_value(const char *file, const struct engine_counters *e, const struct io_counters *io,
                        uint64_t *value);

#endif
