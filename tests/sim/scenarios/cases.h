// SPDX-License-Identifier: BSD-2-Clause
/* Scripted exchanges, as a table of data. Every bug that is found becomes a row. */
#ifndef PUMICE_SIM_CASES_H
#define PUMICE_SIM_CASES_H

#include "tests/sim/sim.h"

#define CASE_OPS 10
#define CASE_STEPS 4
#define CASE_COUNTS 4

enum sweep { /* how many exchanges a case makes */
             SWEEP_NONE, /* one */
             SWEEP_ONE, /* one without loss, then each of its packets lost in turn */
             SWEEP_TWO, /* likewise, and each pair of packets */
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
struct case_count { /* a counter, summed over all engines */
    size_t offset;
    uint64_t least, most;
};
struct sim_case {
    const char *name;
    const char *about;
    enum sweep sweep;
    struct case_op op[2][CASE_OPS]; /* of either end */
    int repeat; /* the list of end 0 is posted so many times; 0: once */
    struct net_faults net;
    struct case_step step[CASE_STEPS];
    enum plant plant; /* in request plant_at of end 0 */
    int plant_at;
    uint64_t recv_at; /* end 1's receives come that late */
    uint64_t rts_late; /* end 1 stays in RTR that long */
    uint32_t psn; /* first one of both; 0: as it comes */
    uint8_t mtu_code; /* 0: 1, 256 bytes */
    uint8_t timeout, retry_cnt, rnr_retry, rnr_timer, rd_atomic; /* 0: as it comes */
    uint32_t window_pkts, peer_window, completion_slots, poll_max; /* likewise */
    uint64_t crowd_timeout, poll_ns; /* likewise */
    bool ecn; /* both ends */
    bool defer, loopback, refill, may_exhaust;
    bool srq, xrc; /* end 1 takes its receives from an SRQ; and is an XRC target, which end 0 sends to */
    uint32_t srq_limit; /* armed from the start */
    uint8_t leaves; /* bit n: end n destroys its QP as soon as it is done */
    uint64_t done_least, done_most; /* when the last completion comes, ns; 0: not asserted */
    struct case_count count[CASE_COUNTS];
};
extern const struct sim_case sim_cases[];
extern const size_t sim_case_count;

/* Exchanges that the case makes, given how many packets the one without loss took. */
uint64_t case_variants(const struct sim_case *c, uint32_t base_packets);
/* The loss mask of one of them; 0: what the table says alone. */
uint64_t case_mask(const struct sim_case *c, uint64_t variant, uint32_t base_packets);
/* Makes the exchange with that mask. */
void case_setup(struct sim *s, const struct sim_case *c, uint64_t mask);
/* What the table asserts, after the exchange; 0, or -1 with s->failure set. */
int case_check(struct sim *s, const struct sim_case *c, uint64_t mask);

#endif
