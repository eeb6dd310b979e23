// SPDX-License-Identifier: BSD-2-Clause
/* Whether programs talk over a device at all. Some make queue pairs, connect them even, and then take another way: MPIs and UCX
 * find shared memory between processes of one machine. */
#ifndef PUMICE_DAEMON_USAGE_H
#define PUMICE_DAEMON_USAGE_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

struct device;
struct client_qp;

struct usage {
    pid_t maker; /* the process that made the latest queue pair; 0: there was none yet */
    unsigned makers; /* how many times that was another process than before */
    uint64_t connected; /* how many times a queue pair was connected with another one (RTR; not UD) */
    uint64_t sent_pkts; /* packets of such queue pairs that are gone, ACKs among them */
};

/* What happens to a queue pair: it has been made, by this process; has got to RTR; is about to be freed. */
void usage_made(struct device *d, pid_t pid);
void usage_ready(struct client_qp *q);
void usage_gone(const struct client_qp *q);

/* {"makers", "connected", "connected_pkts"}, of the queue pairs that there are and were. The caller's. */
json_t *usage_json(struct device *d);

#endif
