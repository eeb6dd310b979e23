// SPDX-License-Identifier: BSD-2-Clause
/* How the ranks of a job come into being and find each other: over TCP, by way of rank 0.
 *
 * Under `pumice run --hosts N` a program just runs: the process that the user starts becomes a launcher, which forks the
 * ranks and puts rank r onto host r mod N (PUMICE_HOSTS says N, PUMICE_HOST tells the verbs library the host). Anywhere
 * else, on machines with real RDMA devices for instance, each rank is started by hand with these in its environment:
 *
 *     TAGMPI_RANK=1 TAGMPI_RANKS=2 TAGMPI_ROOT=address:port     (the address of rank 0's machine)
 */
#ifndef BOOT_H
#define BOOT_H

#include <stddef.h>

enum { BOOT_MAX_RANKS = 64 };

struct boot {
    unsigned rank; /* this process, from 0 */
    unsigned ranks; /* how many there are */
    unsigned hosts; /* virtual hosts that they are spread over; 0: not started by the launcher */
    int fd[BOOT_MAX_RANKS]; /* connections. Rank 0: to each other rank; the others: [0] to rank 0 */
};

/* Makes this process a rank. Returns in the ranks only: the launcher waits for them and exits, with 0 if all ranks did,
 * and ends the rest as soon as one fails. ranks: how many to launch, 1 to BOOT_MAX_RANKS; not used for a rank that was
 * started by hand. Must be called before the verbs library is used. Errors end the process. */
void boot_start(struct boot *b, unsigned ranks);

/* All ranks call it; each gives size bytes, each gets those of all ranks, in the order of ranks. size 0: just waits until
 * all ranks are here. Blocks. A rank that is gone ends the process. */
void boot_exchange(const struct boot *b, const void *mine, void *all, size_t size);

#endif
