// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/crowd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "src/verbs/shim/libc_next.h"

#define TEXT 128u

/* Reads the beginning of a file of /proc. False: it can't be read, and the text is empty. */
static bool read_proc(const char *path, char text[TEXT])
{
    int fd = VB_NEXT(openat)(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : VB_NEXT(read)(fd, text, TEXT - 1);
    if (fd >= 0)
        VB_NEXT(close)(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Are many threads runnable at this moment? The text has three averages, then how many threads are runnable, of how
 * many. */
static bool many_are_runnable(void)
{
    char text[TEXT];
    unsigned runnable = 0;
    return read_proc("/proc/loadavg", text) && sscanf(text, "%*s %*s %*s %u/", &runnable) == 1 &&
           runnable > VB_CROWD * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

bool vb_waited_in_crowd(struct vb_crowd_look *l, uint64_t ran, uint64_t waited)
{
    if (ran < l->ran)
        *l = (struct vb_crowd_look){0}; /* the times of a forked child begin anew */
    if (ran - l->ran >= VB_CROWD_LOOK_NS)
        *l = (struct vb_crowd_look){ran, waited, waited - l->waited > (VB_CROWD - 1) * (ran - l->ran)};
    return l->crowded;
}

/* Has the calling thread lately waited for a processor for most of its time? */
static bool waits_for_processors(void)
{
    static _Thread_local __attribute__((tls_model("initial-exec"))) struct vb_crowd_look look;
    char text[TEXT];
    uint64_t ran, waited;
    return read_proc("/proc/thread-self/schedstat", text) && sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2 &&
           vb_waited_in_crowd(&look, ran, waited);
}

bool vb_machine_is_crowded(void)
{
    bool waits = waits_for_processors(); /* looks in any case, because it judges the time since it last did */
    return many_are_runnable() || waits;
}
