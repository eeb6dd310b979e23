// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/scenarios/cases.h"

#include "wire/syndrome.h"

#include <string.h>

#define SIGNALED SEND_SIGNALED
#define COUNT(name, least, most)                                                                                       \
    {                                                                                                                  \
        offsetof(struct engine_counters, name), least, most                                                            \
    }
#define ONCE_MASK(m)                                                                                                   \
    {                                                                                                                  \
        .delay_ns = 10 * US, .mask = (m), .mask_once = true                                                            \
    }
#define DROP(op, synd, first, last)                                                                                    \
    {                                                                                                                  \
        .delay_ns = 10 * US, .drop_opcode = (op), .drop_syndrome = (synd), .drop_first = (first), .drop_last = (last)  \
    }
#define TIMEOUT_12 (4096ull << 12) /* 16.8 ms, the timeout of the scripts' QPs */
#define ANY UINT64_MAX

/* clang-format off */
const struct sim_case sim_cases[] = {
    /* --- every loss of one packet, and of two, in a short exchange --------------------------------- */
    {.name = "loss-send", .about = "SENDs of one and of three packets", .sweep = SWEEP_TWO,
     .op[0] = {{WR_SEND, SIGNALED, 100}, {WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 0, true}}},
    {.name = "loss-send-imm", .about = "SENDs with immediate data", .sweep = SWEEP_TWO,
     .op[0] = {{WR_SEND_WITH_IMM, SIGNALED, 100}, {WR_SEND_WITH_IMM, SIGNALED | SEND_SOLICITED, 700}}},
    {.name = "loss-write", .about = "WRITEs of one and of three packets", .sweep = SWEEP_TWO,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 100}, {WR_RDMA_WRITE, SIGNALED, 700}, {WR_RDMA_WRITE, SIGNALED, 0, true}}},
    {.name = "loss-write-imm", .about = "WRITEs with immediate data", .sweep = SWEEP_TWO,
     .op[0] = {{WR_RDMA_WRITE_WITH_IMM, SIGNALED, 100}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 700}}},
    {.name = "loss-read", .about = "READs of one and of four packets", .sweep = SWEEP_TWO,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 100}, {WR_RDMA_READ, SIGNALED, 1000}, {WR_RDMA_READ, SIGNALED, 0, true}}},
    {.name = "loss-cas", .about = "compare and swap", .sweep = SWEEP_TWO,
     .op[0] = {{WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}, {WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}, {WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}}},
    {.name = "loss-faa", .about = "fetch and add", .sweep = SWEEP_TWO,
     .op[0] = {{WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}}},
    {.name = "read-then-write", .about = "WRITEs over what READs have just read: the READs return what was there before", .repeat = 5,
     .op[0] = {{WR_RDMA_WRITE, 0, 900}, {WR_RDMA_READ, SIGNALED, 900}, {WR_RDMA_WRITE, 0, 900}, {WR_RDMA_READ, SIGNALED, 40}, {WR_RDMA_WRITE, 0, 40},
               {WR_RDMA_READ, 0, 900}, {WR_ATOMIC_WRITE, SIGNALED, 8}}, .count = {COUNT(send_seq_err, 0, 0)}},
    {.name = "loss-read-then-write", .about = "the same with short READs, whose repetitions return the same data", .sweep = SWEEP_TWO,
     .op[0] = {{WR_RDMA_WRITE, 0, 64}, {WR_RDMA_READ, SIGNALED, 64}, {WR_RDMA_WRITE, 0, 64}, {WR_RDMA_READ, SIGNALED, 8}, {WR_ATOMIC_WRITE, SIGNALED, 8},
               {WR_RDMA_READ, SIGNALED, 30}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 30}}},
    {.name = "loss-atomic-write", .about = "ATOMIC WRITE and FLUSH, over and behind WRITEs", .sweep = SWEEP_TWO,
     .op[0] = {{WR_RDMA_WRITE, 0, 300}, {WR_ATOMIC_WRITE, SIGNALED, 8}, {WR_FLUSH, SIGNALED, 0, true}, {WR_RDMA_WRITE, SIGNALED, 200}}},
    {.name = "loss-inline", .about = "inline data", .sweep = SWEEP_TWO,
     .op[0] = {{WR_SEND, SIGNALED | SEND_INLINE, 64}, {WR_RDMA_WRITE, SIGNALED | SEND_INLINE, 33}, {WR_SEND, SIGNALED | SEND_INLINE, 1}}},
    {.name = "loss-mixed", .about = "all kinds, some unsignaled, some fenced", .sweep = SWEEP_TWO,
     .op[0] = {{WR_SEND, 0, 300}, {WR_RDMA_READ, 0, 600}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_RDMA_WRITE, 0, 257},
               {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 256}, {WR_RDMA_READ, SIGNALED, 256}, {WR_SEND, SIGNALED | SEND_FENCE, 1}}},
    {.name = "loss-both-ways", .about = "both ends at once", .sweep = SWEEP_TWO,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_READ, SIGNALED, 600}, {WR_SEND, SIGNALED, 20}},
     .op[1] = {{WR_RDMA_WRITE, SIGNALED, 600}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_SEND, SIGNALED, 10}}},
    {.name = "loss-psn-wrap", .about = "all kinds over the wrap of the PSN", .sweep = SWEEP_TWO, .psn = 0xfffffd,
     .op[0] = {{WR_SEND, SIGNALED, 600}, {WR_RDMA_READ, SIGNALED, 900}, {WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}, {WR_RDMA_WRITE, SIGNALED, 600}}},
    {.name = "loss-window-1", .about = "one packet at a time", .sweep = SWEEP_ONE, .window_pkts = 1,
     .op[0] = {{WR_SEND, SIGNALED, 900}, {WR_RDMA_READ, SIGNALED, 700}, {WR_RDMA_WRITE, SIGNALED, 513}}},
    {.name = "loss-one-read-credit", .about = "READs and atomics one after the other", .sweep = SWEEP_ONE, .rd_atomic = 1,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 300}, {WR_ATOMIC_FETCH_AND_ADD, 0, 8}, {WR_RDMA_READ, 0, 300}, {WR_SEND, SIGNALED, 3}}},
    {.name = "mask-walk", .about = "three packets of 64, everywhere", .sweep = SWEEP_WALK, .repeat = 4,
     .net = {.delay_ns = 10 * US, .mask = 7},
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_RDMA_READ, 0, 900}, {WR_RDMA_WRITE, SIGNALED, 600}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}}},

    /* --- recovery, and how long it may take -------------------------------------------------------- */
    {.name = "calm", .about = "nothing is lost: nothing is sent twice, and it takes one round trip",
     .op[0] = {{WR_SEND, SIGNALED, 700}}, .done_most = 100 * US,
     .count = {COUNT(duplicate_request, 0, 0), COUNT(sent_pkts, 4, 4)}},
    {.name = "lost-ack", .about = "the probe asks again, before the timeout; no request is executed twice",
     .op[0] = {{WR_SEND, SIGNALED, 700}}, .net = DROP(OP_ACK, 0, 1, 1), .done_most = TIMEOUT_12 / 2,
     .count = {COUNT(timeout_retrans, 0, 0), COUNT(duplicate_request, 1, ANY), COUNT(recvs, 1, 1)}},
    {.name = "lost-last-packet", .about = "the tail probe repeats it, before the timeout",
     .op[0] = {{WR_SEND, SIGNALED, 700}}, .net = DROP(OP_SEND_LAST, 0, 1, 1), .done_most = TIMEOUT_12 / 2,
     .count = {COUNT(timeout_retrans, 0, 0), COUNT(probe_retrans, 1, ANY)}},
    {.name = "lost-only-packet", .about = "the probe repeats the only packet, before the timeout",
     .op[0] = {{WR_SEND, SIGNALED, 10}}, .net = DROP(OP_SEND_ONLY, 0, 1, 1), .done_most = TIMEOUT_12 / 2,
     .count = {COUNT(timeout_retrans, 0, 0), COUNT(probe_retrans, 1, ANY)}},
    {.name = "lost-middle-packet", .about = "the sequence NAK brings it back in about a round trip",
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = DROP(OP_SEND_MIDDLE, 0, 2, 2), .done_most = 150 * US,
     .count = {COUNT(timeout_retrans, 0, 0), COUNT(send_seq_err, 1, 1), COUNT(fast_retrans, 1, ANY)}},
    {.name = "lost-nak", .about = "a packet and the NAK for it are lost: it must not take the timeout",
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = {.delay_ns = 10 * US, .mask = 1 << 2, .mask_once = true, .drop_opcode = OP_ACK,
      .drop_syndrome = NAK_PSN_SEQUENCE, .drop_first = 1, .drop_last = 1}, .done_most = TIMEOUT_12 + 1 * MS},
    {.name = "lost-flight", .about = "nearly all packets of the first flight and all NAKs are lost: each lost packet must not cost a timer", .timeout = 8,
     .op[0] = {{WR_SEND, SIGNALED, 10000}}, .net = {.delay_ns = 10 * US, .mask = 0x7ffffffffe, .mask_once = true, .drop_opcode = OP_ACK,
      .drop_syndrome = NAK_PSN_SEQUENCE, .drop_first = 1, .drop_last = 1000}, .done_most = 10 * MS},
    {.name = "lost-read-response", .about = "the READ is asked for again from where it stopped",
     .op[0] = {{WR_RDMA_READ, SIGNALED, 2000}}, .net = DROP(OP_READ_RESP_MIDDLE, 0, 3, 3), .done_most = TIMEOUT_12 / 2,
     .count = {COUNT(duplicate_request, 1, 1), COUNT(reads, 1, 1)}},
    {.name = "lost-read-last", .about = "the last response is lost",
     .op[0] = {{WR_RDMA_READ, SIGNALED, 2000}}, .net = DROP(OP_READ_RESP_LAST, 0, 1, 1), .done_most = TIMEOUT_12 / 2,
     .count = {COUNT(duplicate_request, 1, 1), COUNT(reads, 1, 1)}},
    {.name = "lost-atomic-response", .about = "lost twice: the saved result is sent again, the atomic is not executed again",
     .op[0] = {{WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}}, .net = DROP(OP_ATOMIC_ACK, 0, 1, 2),
     .count = {COUNT(duplicate_request, 2, ANY), COUNT(atomics, 1, 1)}},
    {.name = "stale-packets", .about = "packets from long ago, after the exchange has gone on", .repeat = 6,
     .net = {.delay_ns = 10 * US, .dup = 300, .reorder = 300, .reorder_ns = 5 * MS},
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_RDMA_READ, SIGNALED, 600}}},

    {.name = "forged-psn", .about = "a third host sends each packet with the peer's address and a PSN that no window can hold: nothing is sent again",
     .repeat = 8, .forged = 1000, .op[0] = {{WR_SEND, SIGNALED, 2000}, {WR_RDMA_READ, SIGNALED, 2000}, {WR_RDMA_WRITE, SIGNALED, 2000},
     {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}}, .op[1] = {{WR_SEND, SIGNALED, 3000}},
     .count = {COUNT(send_seq_err, 0, 0), COUNT(fast_retrans, 0, 0), COUNT(duplicate_request, 0, 0), COUNT(rx_bad_psn, 100, ANY)}},
    {.name = "forged-psn-loss", .about = "the same, and each packet is lost in turn: the NAK for a real gap still comes", .sweep = SWEEP_ONE,
     .forged = 500, .psn = 0xfffffc, .op[0] = {{WR_SEND, SIGNALED, 1500}, {WR_RDMA_READ, SIGNALED, 900}, {WR_SEND, SIGNALED, 700}},
     .count = {COUNT(send_seq_err, 0, 0)}},

    /* --- selective retransmission ------------------------------------------------------------------ */
    {.name = "selective", .about = "a middle packet is lost: only it is sent again, after a round trip", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = DROP(OP_SEND_MIDDLE, 0, 2, 2), .done_most = 60 * US,
     .count = {COUNT(sent_pkts, 10, 10), COUNT(selective_retrans, 1, 1), COUNT(send_seq_err, 0, 0), COUNT(fast_retrans, 1, 1)}},
    {.name = "selective-calm", .about = "nothing is lost: nobody asks, and nothing is reported", .selective = 3,
     .op[0] = {{WR_SEND, SIGNALED, 700}}, .done_most = 100 * US,
     .count = {COUNT(sent_pkts, 4, 4), COUNT(flow_answers_sent, 0, 0), COUNT(sacks_sent, 0, 0), COUNT(out_of_seq_request, 0, 0)}},
    {.name = "selective-many", .about = "every third packet is lost: each is sent again once", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 7680}, {WR_SEND, SIGNALED, 10}}, .net = ONCE_MASK(0x9249249), .done_most = 90 * US,
     .count = {COUNT(selective_retrans, 10, 18), COUNT(duplicate_request, 0, 0), COUNT(probe_retrans, 0, 0)}},
    {.name = "selective-lost-again", .about = "the packet that is sent again is lost, too: a later one shows it", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_SEND, SIGNALED, 9000}, {WR_RDMA_WRITE, SIGNALED, 200000}}, .mtu_code = 5,
     .net = DROP(OP_SEND_FIRST, 0, 1, 2), .done_most = 150 * US,
     .count = {COUNT(send_seq_err, 0, 0), COUNT(probe_retrans, 0, 0), COUNT(selective_retrans, 2, 2), COUNT(duplicate_request, 0, 0)}},
    {.name = "selective-reports", .about = "several reports of one gap come within a round trip: the packet is sent again once", .selective = 3,
     .sacks_known = true, .op[0] = {{WR_SEND, SIGNALED, 9000}, {WR_RDMA_WRITE, SIGNALED, 200000}}, .mtu_code = 5,
     .net = {.delay_ns = 10 * US, .rate = 2000000, .mask = 1, .mask_once = true}, .done_most = 250 * US,
     .count = {COUNT(sacks_sent, 4, ANY), COUNT(selective_retrans, 1, 1), COUNT(duplicate_request, 0, 0)}},
    {.name = "selective-lost-sack", .about = "the report is lost: the tail probe makes the responder repeat it", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = {.delay_ns = 10 * US, .mask = 1 << 2, .mask_once = true, .drop_opcode = OP_SERVICE_UD | OP_SEND_ONLY,
      .drop_first = 1, .drop_last = 1}, .done_most = TIMEOUT_12 / 2,
     .count = {COUNT(selective_retrans, 1, 1), COUNT(probe_retrans, 1, 1), COUNT(fast_retrans, 1, 1)}},
    {.name = "selective-ask", .about = "the first gap gets a NAK, and a probe asks; the next gap gets a report", .selective = 3, .repeat = 60,
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = {.delay_ns = 10 * US, .loss = 50}, .window_pkts = 10,
     .count = {COUNT(send_seq_err, 1, 20), COUNT(sacks_sent, 2, ANY), COUNT(selective_retrans, 2, ANY), COUNT(timeout_retrans, 0, 0)}},
    {.name = "selective-sender", .about = "the receiver does not understand it: all goes as before", .selective = 1,
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = DROP(OP_SEND_MIDDLE, 0, 2, 2), .done_most = 150 * US,
     .count = {COUNT(sacks_sent, 0, 0), COUNT(send_seq_err, 1, 1), COUNT(reordered_requests, 0, 0), COUNT(flow_answers_sent, 0, 0)}},
    {.name = "selective-receiver", .about = "the sender does not understand it: it says so, and all goes as before", .selective = 2, .repeat = 4,
     .op[0] = {{WR_SEND, SIGNALED, 2000}}, .net = {.delay_ns = 10 * US, .loss = 50},
     .count = {COUNT(sacks_sent, 0, 0), COUNT(send_seq_err, 1, ANY), COUNT(reordered_requests, 0, 0), COUNT(flow_answers_sent, 1, 1)}},
    {.name = "selective-reorder", .about = "packets that come late cost a packet each, not a window", .selective = 3, .sacks_known = true, .repeat = 6,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 60000}}, .mtu_code = 3, .net = {.delay_ns = 10 * US, .reorder = 50, .reorder_ns = 10 * US}, .done_most = 5 * MS,
     .count = {COUNT(reordered_requests, 10, ANY), COUNT(send_seq_err, 0, 0), COUNT(timeout_retrans, 0, 0)}},
    {.name = "selective-late", .about = "the same for longer: the sender learns to wait for packets that come late", .selective = 3, .sacks_known = true,
     .repeat = 60, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 60000}}, .mtu_code = 3, .reorder_bytes = 4 << 20, .net = {.delay_ns = 10 * US, .rate = 1000000, .reorder = 50, .reorder_ns = 10 * US}, .done_most = 8 * MS,
     .count = {COUNT(reordered_requests, 200, ANY), COUNT(selective_retrans, 1, 20), COUNT(selective_unneeded, 1, 20), COUNT(probe_retrans, 0, 2)}},
    {.name = "selective-late-loss", .about = "the same, and packets are lost, too: they are sent again after the wait", .selective = 3, .sacks_known = true,
     .repeat = 60, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 60000}}, .mtu_code = 3, .reorder_bytes = 4 << 20, .net = {.delay_ns = 10 * US, .rate = 1000000, .loss = 10, .reorder = 50, .reorder_ns = 10 * US},
     .done_most = 12 * MS, .count = {COUNT(reordered_requests, 200, ANY), COUNT(selective_retrans, 10, 60), COUNT(probe_retrans, 0, 12)}},
    {.name = "selective-long", .about = "long messages of short packets, little room for those behind a gap: the sender goes back once", .selective = 3,
     .seed = 1041, .repeat = 8, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 1000000}}, .mtu_code = 3, .window_pkts = 4096, .peer_window = 4 << 20, .reorder_bytes = 1 << 20,
     .timeout = 14, .net = {.delay_ns = 400 * US, .rate = 1000000, .loss = 50, .dup = 20, .reorder = 50, .reorder_ns = 50 * US}, .done_most = 400 * MS,
     .count = {COUNT(timeout_retrans, 0, 50)}},
    {.name = "selective-outage", .about = "the same after an outage: the sender goes back, and reports show what it need not send again", .selective = 3,
     .seed = 1049, .repeat = 8, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 1000000}}, .mtu_code = 3, .window_pkts = 4096, .peer_window = 4 << 20, .reorder_bytes = 1 << 20,
     .timeout = 14, .net = {.delay_ns = 10 * US, .loss = 50, .dup = 20, .reorder = 50, .reorder_ns = 50 * US, .dead_from = 2 * MS, .dead_until = 60 * MS},
     .done_most = 110 * MS},
    {.name = "selective-read", .about = "a response is lost: only it is asked for again, and those behind it are kept", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 5000}}, .net = DROP(OP_READ_RESP_MIDDLE, 0, 3, 3), .done_most = 60 * US,
     .count = {COUNT(sent_responses, 21, 21), COUNT(selective_retrans, 1, 1), COUNT(reordered_responses, 15, 16), COUNT(duplicate_request, 1, 1)}},
    {.name = "selective-read-many", .about = "every third packet is lost: each response is asked for again once", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 7680}, {WR_SEND, SIGNALED, 10}}, .net = ONCE_MASK(0x924924), .done_most = 90 * US,
     .count = {COUNT(sent_responses, 38, 38), COUNT(selective_retrans, 8, 8), COUNT(selective_unneeded, 0, 0), COUNT(probe_retrans, 0, 0)}},
    {.name = "selective-read-last", .about = "the last response is lost, and a later ACK comes: it is asked for at once", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 2000}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_SEND, SIGNALED, 10}}, .net = DROP(OP_READ_RESP_LAST, 0, 1, 1),
     .done_most = 60 * US, .count = {COUNT(sent_responses, 10, 10), COUNT(atomics, 1, 1), COUNT(recvs, 1, 1), COUNT(probe_retrans, 0, 0)}},
    {.name = "selective-read-again", .about = "the answer is lost, too: a response to a later request shows it", .selective = 3, .sacks_known = true,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 9000}, {WR_RDMA_READ, SIGNALED, 400000}}, .mtu_code = 5, .rd_atomic = 16,
     .net = {.delay_ns = 10 * US, .rate = 4000000, .mask = 1 << 17, .mask_once = true, .drop_opcode = OP_READ_RESP_ONLY, .drop_first = 1, .drop_last = 1},
     .done_most = 300 * US, .count = {COUNT(probe_retrans, 0, 0), COUNT(selective_retrans, 2, 2), COUNT(selective_unneeded, 0, 0)}},
    {.name = "selective-read-lost", .about = "a request is lost, and its responses fill the window behind it: it is sent again in any case", .selective = 3,
     .sacks_known = true, .rd_atomic = 16, .repeat = 40, .op[0] = {{WR_RDMA_READ, SIGNALED, 60000}}, .mtu_code = 5, .peer_window = 1 << 20, .reorder_bytes = 4 << 20,
     .net = {.delay_ns = 10 * US, .rate = 4000000, .loss = 50}, .done_most = 3 * MS,
     .count = {COUNT(reordered_responses, 300, ANY), COUNT(selective_retrans, 25, 100), COUNT(probe_retrans, 0, 3), COUNT(timeout_retrans, 0, 0)}},
    {.name = "selective-read-late", .about = "responses that come late: the requester learns to wait for them", .selective = 3, .sacks_known = true,
     .repeat = 60, .op[0] = {{WR_RDMA_READ, SIGNALED, 60000}}, .mtu_code = 3, .reorder_bytes = 4 << 20, .net = {.delay_ns = 10 * US, .rate = 1000000, .reorder = 50, .reorder_ns = 10 * US},
     .done_most = 8 * MS, .count = {COUNT(reordered_responses, 200, ANY), COUNT(selective_retrans, 1, 30), COUNT(selective_unneeded, 1, 30), COUNT(probe_retrans, 0, 2)}},
    {.name = "selective-read-room", .about = "little room for responses behind a gap: fewer READs are outstanding, and those without room are asked for again",
     .selective = 3, .sacks_known = true, .rd_atomic = 16, .repeat = 8, .op[0] = {{WR_RDMA_READ, SIGNALED, 200000}}, .mtu_code = 3, .reorder_bytes = 60000,
     .net = {.delay_ns = 10 * US, .rate = 4000000, .loss = 30}, .done_most = 5 * MS, .count = {COUNT(reorder_no_room, 1, ANY), COUNT(timeout_retrans, 0, 0)}},
    {.name = "selective-read-sender", .about = "the responder does not understand it: the requester goes back", .selective = 1,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 5000}}, .net = DROP(OP_READ_RESP_MIDDLE, 0, 3, 3), .done_most = 150 * US,
     .count = {COUNT(reordered_responses, 0, 0), COUNT(selective_retrans, 0, 0), COUNT(fast_retrans, 1, 1)}},
    {.name = "selective-mixed", .about = "all kinds at once, while packets of both directions are lost, late and doubled", .selective = 3, .sacks_known = true, .repeat = 7,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 4000}, {WR_RDMA_WRITE, 0, 3000}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}, {WR_SEND, 0, 2000}, {WR_RDMA_READ, 0, 300},
               {WR_ATOMIC_WRITE, SIGNALED, 8}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 700}, {WR_RDMA_READ, SIGNALED | SEND_FENCE, 5000}},
     .op[1] = {{WR_RDMA_READ, SIGNALED, 9000}, {WR_SEND, SIGNALED, 9000}, {WR_RDMA_READ, SIGNALED, 9000}},
     .net = {.delay_ns = 10 * US, .loss = 50, .dup = 20, .reorder = 50, .reorder_ns = 30 * US}, .done_most = 60 * MS,
     .count = {COUNT(reordered_responses, 20, ANY), COUNT(reordered_requests, 20, ANY), COUNT(timeout_retrans, 0, 20)}},

    /* --- receiver not ready ------------------------------------------------------------------------ */
    {.name = "rnr-then-success", .about = "the receive comes after 3 ms; the timer is 0.64 ms",
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 10}}, .recv_at = 3 * MS, .done_least = 3 * MS, .done_most = 4 * MS,
     .count = {COUNT(send_rnr_err, 4, 5), COUNT(recvs, 2, 2), COUNT(timeout_retrans, 0, 0)}},
    {.name = "rnr-write-imm", .about = "only the last packet needs the receive, and only it waits",
     .op[0] = {{WR_RDMA_WRITE_WITH_IMM, SIGNALED, 700}}, .recv_at = 1 * MS, .done_least = 1 * MS, .done_most = 2 * MS,
     .count = {COUNT(send_rnr_err, 1, 2)}},
    {.name = "rnr-loss", .about = "with each packet lost in turn", .sweep = SWEEP_TWO, .recv_at = 700 * US,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_READ, SIGNALED, 300}, {WR_SEND, SIGNALED, 300}}},
    {.name = "rnr-exhausted", .about = "rnr_retry 3: the fourth NAK is the end", .plant = PLANT_RNR, .rnr_retry = 3,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, 0, 10}, {WR_RDMA_WRITE, SIGNALED, 10}},
     .done_least = 3 * 640 * US, .done_most = 3 * 640 * US + 600 * US, .count = {COUNT(send_rnr_err, 4, 4), COUNT(retry_rnr_exceeded_err, 1, 1)}},
    {.name = "rnr-twice", .about = "each packet comes twice, and so do the NAKs: one that comes during the wait is no retry", .plant = PLANT_RNR,
     .rnr_retry = 3, .net = {.dup = 1000}, .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, 0, 10}, {WR_RDMA_WRITE, SIGNALED, 10}},
     .done_least = 3 * 640 * US, .done_most = 3 * 640 * US + 600 * US,
     .count = {COUNT(rcvd_rnr_err, 7, 7), COUNT(rnr_retrans, 9, 9), COUNT(retry_rnr_exceeded_err, 1, 1)}},

    /* --- end-to-end credits ------------------------------------------------------------------------ */
    {.name = "credits", .about = "one receive is there, the others come after 3 ms: no message is refused", .credits = 3, .recv_ready = 1,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 700}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 300}, {WR_SEND_WITH_IMM, SIGNALED, 0, true}},
     .recv_at = 3 * MS, .done_least = 3 * MS, .done_most = 3200 * US,
     .count = {COUNT(send_rnr_err, 0, 0), COUNT(credit_waits, 1, 1), COUNT(credit_asks, 0, 0), COUNT(credit_acks_rcvd, 1, 1)}},
    {.name = "credits-refill", .about = "the same, and the engine fetches the receives", .credits = 3, .recv_ready = 1, .refill = true,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 700}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 300}, {WR_SEND, SIGNALED, 10}},
     .recv_at = 3 * MS, .done_least = 3 * MS, .done_most = 3200 * US, .count = {COUNT(send_rnr_err, 0, 0), COUNT(credit_waits, 1, 1)}},
    {.name = "credits-first", .about = "no receive at first: one message is sent without a credit, and no other", .credits = 3,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}}, .recv_at = 3 * MS, .done_most = 4 * MS,
     .count = {COUNT(send_rnr_err, 4, 5), COUNT(out_of_seq_request, 0, 0), COUNT(duplicate_request, 0, 0)}},
    {.name = "credits-loss", .about = "with each packet lost in turn", .sweep = SWEEP_TWO, .credits = 3, .recv_ready = 1, .recv_at = 700 * US,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_READ, SIGNALED, 300}, {WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 10}}},
    {.name = "credits-lost", .about = "no ACK with two credits arrives: after half a second the sender asks by a message", .credits = 3, .recv_ready = 1,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}}, .recv_at = 3 * MS, .net = DROP(OP_ACK, 2, 1, 100),
     .done_least = 500 * MS, .done_most = 520 * MS, .count = {COUNT(send_rnr_err, 0, 0), COUNT(credit_asks, 1, 1), COUNT(credit_acks_sent, 4, 4)}},
    {.name = "credits-none", .about = "the receives never come: the message that asks is refused until its retries run out", .credits = 3,
     .plant = PLANT_RNR, .plant_at = 1, .rnr_retry = 3, .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}, {WR_SEND, 0, 10}},
     .done_least = 500 * MS, .done_most = 510 * MS, .count = {COUNT(send_rnr_err, 4, 4), COUNT(credit_asks, 1, 1)}},
    {.name = "credits-sender", .about = "the receiver gives no credits, as NICs do: messages are sent without a limit", .credits = 1, .recv_ready = 1,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}}, .recv_at = 3 * MS, .done_most = 4 * MS,
     .count = {COUNT(send_rnr_err, 4, 5), COUNT(out_of_seq_request, 1, ANY), COUNT(credit_waits, 0, 0)}},
    {.name = "credits-receiver", .about = "the sender does not use the credits that it gets", .credits = 2, .recv_ready = 1,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}}, .recv_at = 3 * MS, .done_most = 4 * MS,
     .count = {COUNT(send_rnr_err, 4, 5), COUNT(credit_waits, 0, 0)}},
    {.name = "credits-srq", .about = "a QP with an SRQ gives no credits", .credits = 3, .srq = true, .recv_at = 700 * US,
     .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND, SIGNALED, 10}}, .done_most = 2 * MS, .count = {COUNT(credit_waits, 0, 0), COUNT(credit_acks_sent, 0, 0)}},

    /* --- failures ---------------------------------------------------------------------------------- */
    {.name = "retry-exhausted", .about = "the path is dead: retry_cnt 3 means four timeouts", .retry_cnt = 3, .may_exhaust = true,
     .net = {.dead_until = ANY}, .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, 0, 10}, {WR_RDMA_READ, SIGNALED, 10}},
     .done_least = 4 * TIMEOUT_12, .done_most = 4 * TIMEOUT_12 + TIMEOUT_12 / 4, .count = {COUNT(retry_exceeded_err, 1, 1)}},
    {.name = "retry-stretched", .about = "a timeout below crowd_timeout_ns is stretched to it", .retry_cnt = 3, .may_exhaust = true,
     .net = {.dead_until = ANY}, .op[0] = {{WR_SEND, SIGNALED, 700}}, .crowd_timeout = 3 * TIMEOUT_12,
     .done_least = 12 * TIMEOUT_12, .done_most = 12 * TIMEOUT_12 + TIMEOUT_12, .count = {COUNT(retry_exceeded_err, 1, 1)}},
    {.name = "retry-stretched-most", .about = "a timeout is stretched at most four times", .retry_cnt = 3, .may_exhaust = true,
     .net = {.dead_until = ANY}, .op[0] = {{WR_SEND, SIGNALED, 700}}, .crowd_timeout = 100 * TIMEOUT_12,
     .done_least = 16 * TIMEOUT_12, .done_most = 16 * TIMEOUT_12 + TIMEOUT_12, .count = {COUNT(retry_exceeded_err, 1, 1)}},
    {.name = "retry-exhausted-late", .about = "the path dies in the middle", .retry_cnt = 1, .may_exhaust = true,
     .net = {.delay_ns = 10 * US, .dead_from = 25 * US, .dead_until = ANY}, .repeat = 3, .window_pkts = 2,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, 0, 10}, {WR_RDMA_READ, SIGNALED, 1000}},
     .done_least = 2 * TIMEOUT_12, .done_most = 2 * TIMEOUT_12 + TIMEOUT_12 / 2},
    {.name = "flush-order", .about = "requests after a wrong one are flushed in order, also unsignaled ones", .plant = PLANT_BAD_RKEY,
     .plant_at = 2, .op[0] = {{WR_SEND, 0, 10}, {WR_RDMA_READ, SIGNALED, 700}, {WR_RDMA_WRITE, 0, 700}, {WR_SEND, 0, 10},
     {WR_RDMA_READ, SIGNALED, 10}, {WR_SEND, 0, 300}}, .op[1] = {{WR_SEND, 0, 3000}, {WR_SEND, 0, 3000}, {WR_SEND, SIGNALED, 3000}}},
    {.name = "nak-behind-read", .about = "a NAK waits until the READ before it is answered", .plant = PLANT_BAD_RKEY, .plant_at = 1,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 5000}, {WR_RDMA_WRITE, SIGNALED, 10}}},
    {.name = "nak-old-key", .about = "a deregistered key", .plant = PLANT_OLD_RKEY, .op[0] = {{WR_RDMA_READ, SIGNALED, 700}}},
    {.name = "nak-range", .about = "one byte too many", .plant = PLANT_RANGE, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 700}}},
    {.name = "nak-wrap", .about = "the address wraps", .plant = PLANT_WRAP, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 700}}},
    {.name = "nak-pd", .about = "a key of another protection domain", .plant = PLANT_PD, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 700}}},
    {.name = "nak-mr-access-write", .about = "the region does not grant REMOTE_WRITE", .plant = PLANT_MR_ACCESS, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 7}}},
    {.name = "nak-mr-access-read", .about = "the region does not grant REMOTE_READ", .plant = PLANT_MR_ACCESS, .op[0] = {{WR_RDMA_READ, SIGNALED, 7}}},
    {.name = "nak-mr-access-atomic", .about = "the region does not grant REMOTE_ATOMIC", .plant = PLANT_MR_ACCESS, .op[0] = {{WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8}}},
    {.name = "nak-qp-access-write", .about = "the QP does not grant REMOTE_WRITE", .plant = PLANT_QP_ACCESS, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 7}}},
    {.name = "nak-qp-access-read", .about = "the QP does not grant REMOTE_READ", .plant = PLANT_QP_ACCESS, .op[0] = {{WR_RDMA_READ, SIGNALED, 7}}},
    {.name = "nak-qp-access-atomic", .about = "the QP does not grant REMOTE_ATOMIC", .plant = PLANT_QP_ACCESS, .op[0] = {{WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}}},
    {.name = "nak-misaligned", .about = "an atomic on an odd address", .plant = PLANT_MISALIGNED, .op[0] = {{WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}}},
    {.name = "nak-no-rd-resources", .about = "a READ when max_dest_rd_atomic is 0", .plant = PLANT_NO_RD, .op[0] = {{WR_RDMA_READ, SIGNALED, 8}}},
    {.name = "nak-too-long", .about = "the message is longer than the receive buffer", .plant = PLANT_RECV_SHORT, .plant_at = 1,
     .op[0] = {{WR_SEND, SIGNALED, 20}, {WR_SEND, SIGNALED, 900}, {WR_SEND, SIGNALED, 20}}},
    {.name = "nak-recv-key", .about = "the receive buffer has a bad key", .plant = PLANT_RECV_LKEY, .op[0] = {{WR_SEND, SIGNALED, 900}}},
    {.name = "local-key", .about = "a bad local key, behind requests that are under way", .plant = PLANT_LKEY, .plant_at = 2,
     .op[0] = {{WR_RDMA_READ, 0, 3000}, {WR_SEND, SIGNALED, 900}, {WR_SEND, SIGNALED, 900}, {WR_SEND, 0, 9}}},
    {.name = "local-range", .about = "beyond the local region", .plant = PLANT_LRANGE, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 900}}},
    {.name = "local-access", .about = "a READ into memory that may not be written", .plant = PLANT_LACCESS, .op[0] = {{WR_RDMA_READ, SIGNALED, 900}}},
    {.name = "write-fault", .about = "the responder's memory is gone", .plant = PLANT_WRITE_FAULT, .plant_at = 1,
     .op[0] = {{WR_SEND, SIGNALED, 100}, {WR_SEND, SIGNALED, 900}, {WR_SEND, SIGNALED, 20}}},
    {.name = "write-fault-deferred", .about = "the responder's memory is gone, which is found at the end of the batch", .plant = PLANT_WRITE_FAULT, .plant_at = 0,
     .defer = true, .op[0] = {{WR_SEND, SIGNALED, 900}, {WR_SEND, SIGNALED, 20}}},

    {.name = "write-fault-deferred-read", .about = "the response to a READ behind it must not acknowledge it", .plant = PLANT_WRITE_FAULT,
     .plant_at = 0, .defer = true, .op[0] = {{WR_RDMA_WRITE, SIGNALED, 900}, {WR_RDMA_READ, SIGNALED, 20}}},
    {.name = "invalidate", .about = "no peer can invalidate a region's key", .plant = PLANT_INVALIDATE, .plant_at = 1,
     .op[0] = {{WR_SEND, SIGNALED, 20}, {WR_SEND_WITH_INV, SIGNALED, 20}, {WR_SEND, SIGNALED, 20}}},
    {.name = "invalidate-long", .about = "an invalid key to invalidate, found at the message's last packet", .plant = PLANT_INVALIDATE,
     .op[0] = {{WR_SEND_WITH_INV, SIGNALED, 900}, {WR_SEND, SIGNALED, 20}}},
    {.name = "path-mtu", .about = "the path loses long packets: retries run out although the short packets bring NAKs", .retry_cnt = 2,
     .may_exhaust = true, .net = {.delay_ns = 10 * US, .most_bytes = 200}, .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 300}, {WR_SEND, 0, 300}},
     .done_least = 3 * TIMEOUT_12, .done_most = 4 * TIMEOUT_12, .count = {COUNT(retry_exceeded_err, 1, 1)}},
    {.name = "path-mtu-read", .about = "the path loses long READ responses: retries run out", .retry_cnt = 2, .may_exhaust = true,
     .net = {.delay_ns = 10 * US, .most_bytes = 200}, .op[0] = {{WR_RDMA_READ, SIGNALED, 300}, {WR_RDMA_READ, SIGNALED, 300}},
     .done_least = 3 * TIMEOUT_12, .done_most = 4 * TIMEOUT_12, .count = {COUNT(retry_exceeded_err, 1, 1)}},

    /* --- keys that go while they are in use -------------------------------------------------------- */
    {.name = "dereg-write", .about = "the target is deregistered in the middle of a WRITE", .plant = PLANT_DEREG, .window_pkts = 4,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 5000}, {WR_SEND, 0, 10}}, .step = {{65 * US, 1, STEP_KEY}}, .count = {COUNT(naks_sent, 1, 1)}},
    {.name = "dereg-write-late", .about = "the target is deregistered after the WRITE: it has no effect", .plant = PLANT_DEREG, .window_pkts = 4,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 700}, {WR_SEND, SIGNALED, 10}}, .step = {{65 * US, 1, STEP_KEY}}, .count = {COUNT(recvs, 1, 1)}},
    {.name = "dereg-read", .about = "the target is deregistered in the middle of a READ", .plant = PLANT_DEREG, .window_pkts = 4,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 5000}, {WR_RDMA_READ, 0, 10}}, .step = {{65 * US, 1, STEP_KEY}}, .count = {COUNT(naks_sent, 1, 1)}},
    {.name = "rereg-write", .about = "the target loses REMOTE_WRITE in the middle of a WRITE", .plant = PLANT_REREG, .window_pkts = 4,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 5000}, {WR_SEND, 0, 10}}, .step = {{65 * US, 1, STEP_KEY}}, .count = {COUNT(naks_sent, 1, 1)}},
    {.name = "dereg-source", .about = "the source of a SEND is deregistered in the middle", .plant = PLANT_LDEREG, .window_pkts = 4,
     .op[0] = {{WR_SEND, SIGNALED, 5000}, {WR_SEND, 0, 10}}, .step = {{65 * US, 0, STEP_KEY}}, .count = {COUNT(local_errors, 1, 1)}},
    {.name = "dereg-sink", .about = "the buffer of a READ is deregistered in the middle", .plant = PLANT_LDEREG, .window_pkts = 4,
     .op[0] = {{WR_RDMA_READ, SIGNALED, 5000}, {WR_SEND, 0, 10}}, .step = {{65 * US, 0, STEP_KEY}}, .count = {COUNT(local_errors, 1, 1)}},

    /* --- leaving: the QP is destroyed as soon as its user is done ---------------------------------- */
    {.name = "leave-send", .about = "the receiver leaves", .sweep = SWEEP_TWO, .leaves = 2,
     .op[0] = {{WR_SEND, SIGNALED, 100}, {WR_SEND, SIGNALED, 700}, {WR_RDMA_WRITE, 0, 300}, {WR_SEND, SIGNALED, 50}}},
    {.name = "leave-write-imm", .about = "the receiver leaves after a WRITE with immediate data", .sweep = SWEEP_TWO, .leaves = 2,
     .op[0] = {{WR_SEND_WITH_IMM, 0, 300}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 1000}}, .op[1] = {{WR_SEND, SIGNALED, 10}}},
    {.name = "leave-both", .about = "both leave", .sweep = SWEEP_TWO, .leaves = 3,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 10}}, .op[1] = {{WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 10}}},
    {.name = "leave-disconnect", .about = "both leave, and move their QPs to ERR before", .sweep = SWEEP_TWO, .leaves = 3, .disconnects = true,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 10}}, .op[1] = {{WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 10}}},
    {.name = "leave-rnr", .about = "the receiver is first not ready, and then leaves", .sweep = SWEEP_TWO, .leaves = 2, .recv_at = 700 * US,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_SEND, SIGNALED, 300}}},
    {.name = "leave-psn-wrap", .about = "over the wrap of the PSN", .sweep = SWEEP_TWO, .leaves = 2, .psn = 0xfffffd,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 300}}},

    /* --- megabytes through small windows ----------------------------------------------------------- */
    {.name = "big-write", .about = "4 MB, window of 16 packets, loss", .mtu_code = 5, .window_pkts = 16, .net = {.delay_ns = 10 * US, .loss = 10},
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 4000001}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 1000000}}},
    {.name = "big-send", .about = "3 MB, 20 KB for the peer, loss", .mtu_code = 3, .peer_window = 20000, .net = {.delay_ns = 10 * US, .loss = 10},
     .op[0] = {{WR_SEND, SIGNALED, 2000003}}, .op[1] = {{WR_SEND, SIGNALED, 1000000}}},
    {.name = "big-read", .about = "4 MB, in parts that the window holds, loss", .mtu_code = 4, .peer_window = 65536, .net = {.delay_ns = 10 * US, .loss = 10},
     .op[0] = {{WR_RDMA_READ, SIGNALED, 3000001}, {WR_RDMA_READ, SIGNALED, 1000000}}},
    {.name = "big-both-ways", .about = "a megabyte each, all kinds, over the wrap of the PSN", .mtu_code = 2, .window_pkts = 32, .psn = 0xfffc00,
     .net = {.delay_ns = 10 * US, .loss = 5}, .op[0] = {{WR_SEND, SIGNALED, 500000}, {WR_RDMA_READ, SIGNALED, 500000}},
     .op[1] = {{WR_RDMA_READ, SIGNALED, 500000}, {WR_RDMA_WRITE, SIGNALED, 500000}}},

    /* --- states ------------------------------------------------------------------------------------ */
    {.name = "comm-est", .about = "packets in RTR are answered, and reported once", .rts_late = 1 * MS,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_READ, SIGNALED, 300}}, .op[1] = {{WR_SEND, SIGNALED, 10}},
     .done_least = 1 * MS, .done_most = 2 * MS},
    {.name = "drain", .about = "SQD: started requests are finished, the others wait for RTS", .repeat = 3,
     .op[0] = {{WR_SEND, SIGNALED, 3000}, {WR_RDMA_READ, SIGNALED, 3000}, {WR_RDMA_WRITE, 0, 3000}, {WR_SEND, SIGNALED, 3000}},
     .step = {{5 * US, 0, STEP_SQD}, {3 * MS, 0, STEP_RESUME}}, .window_pkts = 4, .done_least = 3 * MS},
    {.name = "reset-discards", .about = "RESET in the middle: no completion, and the peer's retries run out", .retry_cnt = 1,
     .op[0] = {{WR_SEND, SIGNALED, 3000}, {WR_RDMA_READ, SIGNALED, 3000}}, .op[1] = {{WR_SEND, SIGNALED, 3000}, {WR_SEND, SIGNALED, 3000}},
     .window_pkts = 4, .step = {{15 * US, 0, STEP_RESET}}},
    {.name = "kill-in-the-middle", .about = "to ERR while packets are under way: all flushed, in order", .retry_cnt = 1,
     .op[0] = {{WR_SEND, SIGNALED, 3000}, {WR_RDMA_READ, 0, 3000}, {WR_SEND, 0, 3}}, .op[1] = {{WR_SEND, SIGNALED, 3000}, {WR_SEND, 0, 3000}},
     .window_pkts = 4, .step = {{15 * US, 0, STEP_KILL}}},

    /* --- owners ------------------------------------------------------------------------------------ */
    /* --- congestion -------------------------------------------------------------------------------- */
    {.name = "marks-ignored", .about = "every packet is marked, and ECN is off: no CNP is sent", .repeat = 30, .net = {.delay_ns = 10 * US, .ce = 1000},
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 60000}}, .mtu_code = 3, .done_most = 10 * MS,
     .count = {COUNT(np_ecn_marked_roce_packets, 1000, 1000000), COUNT(np_cnp_sent, 0, 0)}},
    {.name = "marks", .about = "every packet is marked, with ECN: CNPs come, and the sender slows down", .repeat = 30, .net = {.delay_ns = 10 * US, .ce = 1000},
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 60000}}, .mtu_code = 3, .ecn = true, .done_least = 200 * MS, .done_most = 1600 * MS,
     /* The ACKs are marked, too. The CNPs that answer them go to an end that has no data under way. */
     .count = {COUNT(np_cnp_sent, 100, 20000), COUNT(rp_cnp_handled, 50, 10000), COUNT(rx_idle_cnp, 50, 10000), COUNT(timeout_retrans, 0, 0)}},
    {.name = "marks-read", .about = "responses to READs slow down, too", .repeat = 30, .net = {.delay_ns = 10 * US, .ce = 1000},
     .op[0] = {{WR_RDMA_READ, SIGNALED, 60000}}, .mtu_code = 3, .ecn = true, .done_least = 200 * MS, .done_most = 1600 * MS,
     .count = {COUNT(np_cnp_sent, 100, 20000), COUNT(rp_cnp_handled, 100, 20000)}},
    {.name = "marks-few", .about = "few marks cost little, also with losses", .repeat = 30,
     .net = {.delay_ns = 10 * US, .ce = 2, .loss = 5}, .op[0] = {{WR_SEND, SIGNALED, 60000}}, .mtu_code = 3, .ecn = true, .done_most = 100 * MS},

    {.name = "back-pressure", .about = "64 completion slots, taken one by one", .repeat = 30, .completion_slots = 64, .poll_ns = 10 * US,
     .poll_max = 1, .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_RDMA_WRITE, SIGNALED, 10}}},
    {.name = "back-pressure-loopback", .about = "both ends' completions in the same 64 slots", .repeat = 30, .completion_slots = 64,
     .poll_ns = 10 * US, .poll_max = 3, .loopback = true, .op[0] = {{WR_SEND, SIGNALED, 10}, {WR_SEND_WITH_IMM, SIGNALED, 100}}},
    {.name = "loopback", .about = "two QPs of one engine", .sweep = SWEEP_ONE, .loopback = true, .defer = true,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_RDMA_READ, SIGNALED, 700}, {WR_ATOMIC_CMP_AND_SWP, SIGNALED, 8}, {WR_RDMA_WRITE, SIGNALED, 700}},
     .op[1] = {{WR_SEND, SIGNALED, 700}, {WR_RDMA_READ, SIGNALED, 700}}},
    {.name = "refill", .about = "receives are fetched when they are needed", .sweep = SWEEP_ONE, .refill = true, .defer = true,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 700}, {WR_SEND_WITH_IMM, SIGNALED, 60}}},

    /* --- shared receive queues and XRC ------------------------------------------------------------- */
    {.name = "srq", .about = "receives from an SRQ, its limit reached at the third message", .sweep = SWEEP_TWO, .srq = true, .srq_limit = 2,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_WRITE_WITH_IMM, 0, 300}, {WR_SEND, SIGNALED, 700}, {WR_SEND_WITH_IMM, SIGNALED, 10}},
     .op[1] = {{WR_SEND, SIGNALED, 10}}},
    {.name = "srq-late", .about = "the SRQ is empty first", .sweep = SWEEP_ONE, .srq = true, .recv_at = 700 * US, .srq_limit = 1,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 10}}, .done_least = 700 * US},
    {.name = "srq-kill", .about = "to ERR in the middle of a message: it is flushed, and the last", .retry_cnt = 1, .srq = true, .window_pkts = 4,
     .op[0] = {{WR_SEND, SIGNALED, 3000}, {WR_SEND, SIGNALED, 10}}, .step = {{15 * US, 1, STEP_KILL}}},
    {.name = "srq-reset", .about = "RESET in the middle of a message puts its receive back", .retry_cnt = 1, .srq = true, .window_pkts = 4,
     .op[0] = {{WR_SEND, SIGNALED, 3000}, {WR_SEND, SIGNALED, 10}}, .step = {{15 * US, 1, STEP_RESET}}},
    {.name = "srq-leave", .about = "the receiver leaves", .sweep = SWEEP_TWO, .srq = true, .leaves = 2,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 50}}},
    {.name = "xrc", .about = "all kinds of requests, each packet lost in turn", .sweep = SWEEP_TWO, .xrc = true,
     .op[0] = {{WR_SEND, SIGNALED, 300}, {WR_RDMA_READ, 0, 700}, {WR_RDMA_WRITE_WITH_IMM, SIGNALED, 600}, {WR_ATOMIC_FETCH_AND_ADD, SIGNALED, 8},
               {WR_RDMA_WRITE, SIGNALED, 300}, {WR_SEND_WITH_IMM, SIGNALED, 0, true}}},
    {.name = "xrc-psn-wrap", .about = "requests over the wrap of the PSN, with late receives", .sweep = SWEEP_ONE, .xrc = true, .psn = 0xfffffe,
     .recv_at = 300 * US, .op[0] = {{WR_SEND, SIGNALED, 600}, {WR_RDMA_READ, SIGNALED, 700}, {WR_SEND, SIGNALED, 10}}},
    {.name = "xrc-leave", .about = "both leave", .sweep = SWEEP_TWO, .xrc = true, .leaves = 3,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 50}}},
    {.name = "xrc-number", .about = "a number that no SRQ has, after a valid request", .xrc = true, .plant = PLANT_XRC_NUMBER, .plant_at = 1,
     .op[0] = {{WR_SEND, SIGNALED, 700}, {WR_SEND, SIGNALED, 700}, {WR_SEND, 0, 10}}, .count = {COUNT(xrc_refused, 1, 1), COUNT(naks_sent, 1, 1)}},
    {.name = "xrc-rkey", .about = "a key of another protection domain than the SRQ's", .xrc = true, .plant = PLANT_PD, .plant_at = 1,
     .op[0] = {{WR_RDMA_WRITE, SIGNALED, 700}, {WR_RDMA_WRITE, SIGNALED, 700}}, .count = {COUNT(xrc_refused, 0, 0), COUNT(naks_sent, 1, 1)}},
};
/* clang-format on */
const size_t sim_case_count = sizeof sim_cases / sizeof sim_cases[0];

/* --- from a case to an exchange ---------------------------------------------------------------- */

static void setup_hosts(struct sim *s, const struct sim_case *c, bool selective)
{
    for (int i = 0; i < s->sc.nhosts; i++) {
        struct engine_config *g = &s->host[i].cfg;
        g->window_pkts = c->window_pkts ? c->window_pkts : g->window_pkts;
        g->crowd_timeout_ns = c->crowd_timeout;
        g->peer_window_bytes = c->peer_window ? c->peer_window : g->peer_window_bytes;
        g->completion_slots = c->completion_slots ? c->completion_slots : g->completion_slots;
        g->ecn = c->ecn;
        g->e2e_credits = c->credits >> i & 1;
        g->selective = selective || (c->selective >> i & 1);
        g->reorder_bytes = c->reorder_bytes ? c->reorder_bytes : g->reorder_bytes;
        g->selective_assumed = selective || c->sacks_known;
    }
}

static void setup_end(struct end *e, const struct sim_case *c)
{
    struct qp_attr *a = &e->attr;
    e->mtu = 128u << e->sim->sc.mtu_code;
    a->path_mtu = (uint8_t)e->sim->sc.mtu_code;
    a->timeout = c->timeout ? c->timeout : a->timeout;
    a->retry_cnt = c->retry_cnt ? c->retry_cnt : a->retry_cnt;
    a->min_rnr_timer = c->rnr_timer ? c->rnr_timer : a->min_rnr_timer;
    a->max_rd_atomic = c->rd_atomic ? c->rd_atomic : a->max_rd_atomic;
    if (a->max_rd_atomic > a->max_dest_rd_atomic)
        a->max_dest_rd_atomic = a->max_rd_atomic;
    e->sq_psn = c->psn ? c->psn : e->sq_psn;
    e->sig_all = false;
    e->refill = c->refill;
    e->leaves = (c->leaves >> e->index) & 1;
    e->disconnects = c->disconnects;
    e->host = c->loopback ? 0 : e->host;
    if (e->index == 1) {
        e->rts_at = c->rts_late;
    }
    int times = e->index == 0 && c->repeat ? c->repeat : 1;
    for (int k = 0; k < times; k++) {
        for (const struct case_op *o = c->op[e->index]; o < c->op[e->index] + CASE_OPS && (o->len > 0 || o->zero);
             o++) {
            ops_add(e, o->opcode, o->len, o->flags);
        }
    }
}

/* The mask of two packets. Pairs are numbered (0,1), (0,2) …, (1,2) … */
static uint64_t pair_mask(uint64_t pair, uint64_t packets)
{
    for (uint64_t i = 0; i < packets; i++) {
        uint64_t row = packets - 1 - i;
        if (pair < row) {
            return (uint64_t)1 << i | (uint64_t)1 << (i + 1 + pair);
        }
        pair -= row;
    }
    return 0;
}

static uint64_t capped(uint32_t packets)
{
    return packets < 40 ? packets : 40;
}

uint64_t case_variants(const struct sim_case *c, uint32_t base_packets)
{
    uint64_t n = capped(base_packets);
    switch (c->sweep) {
    case SWEEP_ONE:
        return 1 + n;
    case SWEEP_TWO:
        return 1 + n + n * (n - 1) / 2;
    case SWEEP_WALK:
        return 64;
    default:
        return 1;
    }
}

/* A variant is identified by its mask: 0 is no loss, otherwise the bits are the lost packets. So it can be replayed
 * without exchange 0. */
static void setup_net(struct sim *s, const struct sim_case *c, uint64_t mask)
{
    struct net_faults *f = &s->sc.net;
    *f = c->net;
    f->delay_ns = f->delay_ns ? f->delay_ns : 10 * US;
    f->reorder_ns = f->reorder_ns ? f->reorder_ns : 1;
    if (c->sweep == SWEEP_WALK) {
        f->mask = mask ? mask : f->mask;
    } else if (mask) {
        f->mask = mask;
        f->mask_once = true;
    }
    s->sc.lossless = f->mask == 0 && f->drop_first == 0 && f->dead_until == 0 && f->loss == 0 && f->most_bytes == 0;
    s->sc.may_exhaust = c->may_exhaust;
}

uint64_t case_mask(const struct sim_case *c, uint64_t variant, uint32_t base_packets)
{
    uint64_t n = capped(base_packets);
    if (c->sweep == SWEEP_WALK) {
        return variant == 0 ? c->net.mask : c->net.mask << variant | c->net.mask >> (64 - variant);
    }
    if (variant == 0) {
        return 0;
    }
    return variant <= n ? (uint64_t)1 << (variant - 1) : pair_mask(variant - 1 - n, n);
}

void case_setup(struct sim *s, const struct sim_case *c, uint64_t mask, bool selective)
{
    scenario_defaults(s, c->seed ? c->seed : 1000 + (uint64_t)(c - sim_cases));
    s->sc.name = c->name;
    s->sc.mtu_code = c->mtu_code ? c->mtu_code : 1;
    s->sc.defer = c->defer;
    s->sc.forged = c->forged;
    s->sc.poll_ns = c->poll_ns;
    s->sc.poll_max = c->poll_max ? c->poll_max : 100;
    setup_net(s, c, mask);
    setup_hosts(s, c, selective);
    if (c->srq || c->xrc) {
        pool_script(s, c->xrc);
    }
    setup_end(&s->end[0], c);
    setup_end(&s->end[1], c);
    if (c->plant) {
        ops_plant(&s->end[0], c->plant_at, c->plant);
        s->end[0].attr.rnr_retry = c->rnr_retry ? c->rnr_retry : 7;
    }
    if (s->npools > 0) {
        pools_draw_recvs(s, false, true);
        s->pool[0].limit = c->srq_limit;
    }
    for (int i = 0; i < s->end[1].nrcv; i++) {
        s->end[1].rcv[i].at = i < c->recv_ready ? 0 : c->recv_at;
    }
    for (int i = 0; i < CASE_STEPS; i++) {
        const struct case_step *p = &c->step[i];
        if (p->at) {
            evq_push(&s->events, (struct timed){.at = p->at, .kind = EV_STEP, .n = p->end, .v = p->step});
        }
    }
}

int case_check(struct sim *s, const struct sim_case *c, uint64_t mask)
{
    const struct totals *t = &s->totals;
    const uint8_t *counters = (const uint8_t *)&t->counters;
    if (mask != 0) {
        return 0; /* the table describes the exchange without other losses */
    }
    if (t->done_at < c->done_least || (c->done_most && t->done_at > c->done_most)) {
        snprintf(s->failure, sizeof s->failure, "done after %llu ns, must be %llu … %llu",
                 (unsigned long long)t->done_at, (unsigned long long)c->done_least, (unsigned long long)c->done_most);
        return -1;
    }
    for (int i = 0; i < CASE_COUNTS; i++) {
        const struct case_count *k = &c->count[i];
        uint64_t n;
        memcpy(&n, counters + k->offset, sizeof n);
        if ((k->offset || k->least || k->most) && (n < k->least || n > k->most)) {
            snprintf(s->failure, sizeof s->failure, "counter %d of the case is %llu, must be %llu … %llu", i,
                     (unsigned long long)n, (unsigned long long)k->least, (unsigned long long)k->most);
            return -1;
        }
    }
    return 0;
}
