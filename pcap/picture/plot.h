// SPDX-License-Identifier: BSD-2-Clause
/* Finds what a plot shows of a capture: for each queue pair that sends requests, its sequence numbers, its throughput and
 * its round trips. plot_svg.h draws it. */
#ifndef PUMICE_PCAP_PICTURE_PLOT_H
#define PUMICE_PCAP_PICTURE_PLOT_H

#include "pcap/trace/trace.h"

#define PLOT_QPS 6 /* queue pairs of a plot, if the user does not say how many */
#define PLOT_QPS_MAX 64
#define PLOT_BINS 220 /* parts of the time axis for which the throughput is computed */

/* The payload of one bin, in bytes. */
struct plot_bin {
    uint64_t sent; /* of requests, sent the first time */
    uint64_t read; /* of READ responses, sent the first time */
    uint64_t again; /* of retransmissions */
    uint64_t lost;
};

/* The time from a request to its response. */
struct plot_trip {
    uint64_t time_ns; /* when the response came */
    uint64_t trip_ns;
};

/* A queue pair that sends requests. */
struct plot_qp {
    uint32_t flow; /* of its requests */
    uint32_t requests; /* packets */
    uint32_t lost, again; /* of both directions */
    uint64_t bytes; /* payload of both directions, without repeated packets */
    uint64_t psn_low, psn_high; /* of packets of both directions, extended */
    struct plot_bin bins[PLOT_BINS];
    struct plot_trip *trips; /* in the order of time */
    size_t num_trips, cap_trips;
};

struct plot {
    struct trace trace;
    const char *name; /* of the file */
    struct plot_qp *qps; /* those with the most requests first */
    size_t num_qps;
    size_t all_qps; /* queue pairs that could be shown */
    uint64_t low_ns, high_ns; /* times of the first and the last packet of these */
};

/* Reads f, and closes it. Keeps the `count` queue pairs that sent the most requests. name is that of the file; it must
 * stay. Returns as ladder_read: 0, -ENOMEM, -EINVAL (the reason is in p->trace.error), or -ENODATA if no requests are
 * chosen. After -EINVAL the plot has the packets that were read, if p->num_qps is not 0. The caller always frees *p by
 * plot_free. */
int plot_read(struct plot *p, FILE *f, const char *name, const struct trace_options *options, uint32_t count);

void plot_free(struct plot *p);

/* The part that a packet has in a queue pair's plot: PLOT_NOT, or the side that sent it. */
enum plot_side {
    PLOT_NOT,
    PLOT_REQUEST,
    PLOT_RESPONSE,
};
enum plot_side plot_side(const struct plot *p, const struct plot_qp *qp, const struct trace_packet *packet);

/* The nanoseconds of a bin; at least 1. */
uint64_t plot_bin_ns(const struct plot *p);

#endif
