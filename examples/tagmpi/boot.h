// SPDX-License-Identifier: BSD-2-Clause
/* Starts the ranks of a job. The ranks find each other over TCP, through rank 0.
 *
 * Under `pumice run --hosts N`, the user starts one process. It becomes a launcher, which forks the ranks and puts
 * rank r onto host r mod N. (PUMICE_HOSTS is N, and PUMICE_HOST tells the verbs library the host.) Without `pumice
 * run`, for example on machines with real RDMA devices, the user starts each rank with these variables in its
 * environment:
 *
 *     TAGMPI_RANK=1 TAGMPI_RANKS=2 TAGMPI_ROOT=address:port     (the address of rank 0's machine)
 */
#ifndef PUMICE_EXAMPLES_TAGMPI_BOOT_H
#define PUMICE_EXAMPLES_TAGMPI_BOOT_H

#include <stddef.h>

enum { BOOT_MAX_RANKS = 64 };

struct boot {
    unsigned rank; /* this process, from 0 */
    unsigned ranks; /* number of ranks */
    unsigned hosts; /* number of virtual hosts of the ranks; 0: the launcher did not start this rank */
    /* Connections. Rank 0 has one to each other rank; the other ranks have one to rank 0, in fd[0]. */
    int fd[BOOT_MAX_RANKS];
};

/* Makes this process a rank. Returns in the ranks only. The launcher waits for them. It exits with 0 if all ranks
 * exited with 0, and ends the remaining ranks when one fails. ranks: number of ranks to launch, 1 to BOOT_MAX_RANKS;
 * not used for a rank that the user started. Call it before the first use of the verbs library. Errors end the
 * process. */
void boot_start(struct boot *b, unsigned ranks);

/* All ranks call it. Each rank gives size bytes and gets the bytes of all ranks, in the order of ranks. With size 0,
 * it only waits until all ranks are here. Blocks. A rank that is gone ends the process. */
void boot_exchange(const struct boot *b, const void *mine, void *all, size_t size);

#endif
