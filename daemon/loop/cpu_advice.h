// SPDX-License-Identifier: BSD-2-Clause
/* Advises the clients of a device on which processor they should poll. The scheduler does not know which threads exchange
 * messages.
 *
 * If two programs exchange messages within the device, each message needs the device's thread, and then the peer. The
 * exchange is fastest if the thread has a processor to itself, and the two programs share another one: they yield to each
 * other. On two processors, 8 bytes took 2.1 us instead of 2.8 (medians of five runs), and 2.6 million messages of 64 bytes
 * passed in a second instead of 1.0 million. The receiver beside this thread is the worst case. So clients should leave the
 * processor of the thread.
 *
 * Short messages of other devices come by the kernel. The shortest way leads from the client to its daemon by a yield, and
 * to the other processor by the socket. So a client that has no processor for itself should be beside its daemon. Then 8
 * bytes took 5.9 us; the other ways to place two clients and two daemons on two processors took 6.5 to 7.5 us.
 *
 * A device that sends long messages is busy all the time, and the bound of their bandwidth. The receiving device has time
 * left. So clients should leave the processor of the sender, even if others compute on the other ones: with 64 KiB, the
 * client on the other processor made 3,400 MiB/s, and beside the sender 2,700.
 *
 * The client of a READ may poll on the processor of the device that sends the responses. That device is the bound, and the
 * client's own daemon has time left. So a client on a crowded processor should go to the processor of its daemon.
 *
 * In all other cases the scheduler is left alone. So it is if there are more programs than processors. */
#ifndef PUMICE_DAEMON_LOOP_CPU_ADVICE_H
#define PUMICE_DAEMON_LOOP_CPU_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

enum cpu_advice {
    CPU_ADVICE_NONE,
    CPU_ADVICE_APART, /* leave the processor of the device's thread, unless other programs compute on the others */
    CPU_ADVICE_AWAY, /* leave it in any case */
    CPU_ADVICE_BESIDE, /* share the processor of the device's thread rather than another one */
    CPU_ADVICE_BESIDE_CROWDED, /* go to the processor of the device's thread, if other threads crowd the client's */
};

/* The traffic of a device so far. */
struct cpu_advice_traffic {
    uint64_t inside; /* packets within the device */
    uint64_t outside; /* packets of its sockets, in and out … */
    uint64_t datagrams; /* … in so many datagrams */
    uint64_t bytes_out, bytes_in; /* of these packets */
};

/* To be called now and then. last: the traffic at the last look, which this call updates; initially zero. */
enum cpu_advice cpu_advice_look(struct cpu_advice_traffic *last, const struct cpu_advice_traffic *now,
                                unsigned sessions, unsigned processors);

/* Do so many sessions crowd each other? Then their threads must not ask for short time slices (src/verbs/base/poll_brief.h).
 * Each wait would cost more, and no thread would run sooner than the others. A job of 64 ranks on two
 * processors (MPI_Init, an allreduce, MPI_Finalize) took 6.3 s with them, and takes 5.4 s without (medians of four). */
bool cpu_advice_many(unsigned sessions, unsigned processors);

#endif
