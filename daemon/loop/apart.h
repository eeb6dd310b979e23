// SPDX-License-Identifier: BSD-2-Clause
/* Should clients leave the processor of the device's thread? If two programs exchange messages within the device, each message
 * needs this thread, and then the peer. The exchange is fastest if the thread has a processor to itself, and the two
 * programs share another one: they yield to each other. The scheduler doesn't know that, and keeps any two of the three
 * together. On two processors, 8 bytes take 2.1 us instead of 2.8 (medians of five runs), and 2.6 million messages of
 * 64 bytes pass in a second instead of 1.0 million. The receiver beside this thread is the worst case.
 *
 * Messages of other devices come by the kernel, in the processor of their sender. Then a client on the processor of its own
 * daemon has the shortest way. So clients stay where they are. They do so, too, if there are more programs than
 * processors. */
#ifndef PUMICE_DAEMON_LOOP_APART_H
#define PUMICE_DAEMON_LOOP_APART_H

#include <stdbool.h>
#include <stdint.h>

struct apart {
    uint64_t inside, outside; /* packets so far, at the last look */
};

/* To be called now and then, with the packets so far within the device and of its socket. Returns whether the clients
 * should leave. */
bool apart_look(struct apart *a, uint64_t inside, uint64_t outside, unsigned sessions, unsigned processors);

#endif
