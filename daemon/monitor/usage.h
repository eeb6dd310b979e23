// SPDX-License-Identifier: BSD-2-Clause
/* Records whether programs use a device at all. Some programs make QPs, even connect them, and then use another
 * transport: MPIs and UCX choose shared memory between processes of one machine. */
#ifndef PUMICE_DAEMON_USAGE_H
#define PUMICE_DAEMON_USAGE_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

struct device;
struct client_qp;

struct usage {
    pid_t maker; /* the process that made the latest QP; 0: there was none yet */
    unsigned makers; /* how often a QP was made by another process than the QP before */
    /* How often a QP was connected to another one (RTR; not UD). */
    uint64_t connected;
    uint64_t sent_pkts; /* packets of such QPs that were destroyed, ACKs included */
};

/* Events of a QP: it was made by this process; it reached RTR; it is about to be freed. */
void usage_made(struct device *d, pid_t pid);
void usage_ready(struct client_qp *q);
void usage_gone(const struct client_qp *q);

/* {"makers", "connected", "connected_pkts"} of all QPs, past and present. The caller owns it. */
json_t *usage_json(struct device *d);

#endif
