// SPDX-License-Identifier: BSD-2-Clause
/* Scripted exchanges, as a table of data. Every bug that is found becomes a case. */
#ifndef PUMICE_TESTS_SIM_SCENARIOS_CASES_H
#define PUMICE_TESTS_SIM_SCENARIOS_CASES_H

#include "tests/sim/sim.h"

#define CASE_OPS 10
#define CASE_STEPS 4
#define CASE_COUNTS 4

/* How many exchanges a case makes. */
enum sweep {
    SWEEP_NONE, /* one */
    SWEEP_ONE, /* one without loss, then one for each of its packets lost */
    SWEEP_TWO, /* as SWEEP_ONE, and one for each pair of packets lost */
    SWEEP_WALK, /* 64 rotations of the network's mask */
};
struct case_op {
    uint8_t opcode;
    uint8_t flags;
    uint32_t len; /* 0 with opcode 0: end of the list unless `zero` */
    bool zero; /* really 0 bytes */
};
struct case_step {
    uint64_t at;
    int end;
    enum end_step step;
};
/* A counter, summed over all engines. */
struct case_count {
    size_t offset;
    uint64_t least, most;
};
struct sim_case {
    const char *name;
    const char *about;
    enum sweep sweep;
    struct case_op op[2][CASE_OPS]; /* requests of each end */
    int repeat; /* how often the list of end 0 is posted; 0: once */
    struct net_faults net;
    struct case_step step[CASE_STEPS];
    enum plant plant; /* in request plant_at of end 0 */
    int plant_at;
    uint64_t recv_at; /* time when end 1 posts its receives */
    int recv_ready; /* … except for the first ones, which are there at once */
    uint64_t rts_late; /* end 1 stays in RTR this long */
    uint64_t seed; /* 0: the place in the table says it */
    uint32_t psn; /* the first PSN of both ends; 0: default */
    uint8_t mtu_code; /* 0: 1, 256 bytes */
    uint8_t timeout, retry_cnt, rnr_retry, rnr_timer, rd_atomic; /* 0: default */
    uint32_t window_pkts, peer_window, completion_slots, poll_max, reorder_bytes; /* 0: default */
    uint64_t crowd_timeout, poll_ns; /* 0: default */
    bool ecn; /* both ends */
    uint8_t selective; /* bit n: end n understands selective acknowledgements, and asks its peer at the first gap */
    bool sacks_known; /* … but it knows that its peer does */
    uint8_t credits; /* bit n: end n uses end-to-end credits */
    uint32_t forged; /* per mille of packets that are also sent with a PSN far away */
    bool defer, loopback, refill, may_exhaust;
    /* srq: end 1 takes its receives from an SRQ. xrc: end 1 is an XRC target of end 0, with such an SRQ. */
    bool srq, xrc;
    uint32_t srq_limit; /* armed from the start */
    uint8_t leaves; /* bit n: end n destroys its QP as soon as it is done */
    bool disconnects; /* those that leave move their QP to ERR before, as rdma_disconnect does */
    uint64_t done_least, done_most; /* time of the last completion, ns; 0: not checked */
    struct case_count count[CASE_COUNTS];
};
extern const struct sim_case sim_cases[];
extern const size_t sim_case_count;

/* Number of exchanges of the case. base_packets: the number of packets in the exchange without loss. */
uint64_t case_variants(const struct sim_case *c, uint32_t base_packets);
/* The loss mask of one exchange; 0: only the faults in the table. */
uint64_t case_mask(const struct sim_case *c, uint64_t variant, uint32_t base_packets);
/* Sets up the exchange with this mask. selective: both ends know that they understand selective acknowledgements. */
void case_setup(struct sim *s, const struct sim_case *c, uint64_t mask, bool selective);
/* Checks the table's assertions after the exchange. Returns 0, or -1 with s->failure set. */
int case_check(struct sim *s, const struct sim_case *c, uint64_t mask);

#endif
