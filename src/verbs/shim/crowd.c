// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/crowd.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "src/verbs/shim/libc_next.h"

bool vb_machine_is_crowded(void)
{
    char text[128];
    unsigned runnable = 0;
    int fd = VB_NEXT(openat)(AT_FDCWD, "/proc/loadavg", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = VB_NEXT(read)(fd, text, sizeof(text) - 1);
    VB_NEXT(close)(fd);
    text[n > 0 ? n : 0] = 0;
    /* Three averages, then how many threads are runnable, of how many. */
    return sscanf(text, "%*s %*s %*s %u/", &runnable) == 1 &&
           runnable > VB_CROWD * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}
