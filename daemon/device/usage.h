// SPDX-License-Identifier: BSD-2-Clause
/* Records whether programs use a device at all. Some programs make QPs, even connect them, and then use another
 * transport: MPIs and UCX choose shared memory between processes of one machine. */
#ifndef PUMICE_DAEMON_DEVICE_USAGE_H
#define PUMICE_DAEMON_DEVICE_USAGE_H

#include <stdint.h>
#include <sys/types.h>

struct usage {
    pid_t maker; /* the process that made the latest QP; 0: there was none yet */
    unsigned makers; /* how often a QP was made by another process than the QP before */
    /* How often a QP was connected to another one (RTR; not UD). */
    uint64_t connected;
    uint64_t sent_pkts; /* packets that destroyed QPs have sent (not UD), ACKs included */
};

/* A process has created a QP. */
static inline void usage_qp_created(struct usage *u, pid_t pid)
{
    u->makers += pid != u->maker;
    u->maker = pid;
}

#endif
