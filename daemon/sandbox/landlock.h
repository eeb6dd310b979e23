// SPDX-License-Identifier: BSD-2-Clause
/* The files that the daemon may use (Landlock). A thread in a Landlock domain can't use process_vm_readv on programs
 * outside of it, whatever their user. So the threads of the devices are not in the domain if the daemon uses that. */
#ifndef PUMICE_DAEMON_SANDBOX_LANDLOCK_H
#define PUMICE_DAEMON_SANDBOX_LANDLOCK_H

#include <stdbool.h>

/* An empty or NULL path is left out. */
struct landlock_paths {
    const char *socket; /* the control socket, which is removed in the end */
    const char *tree; /* the directory beside it that the daemon writes */
    const char *append; /* a file to which it appends */
    const char *config; /* a file that it reads again */
    bool abstract_sockets; /* it may send to abstract Unix sockets */
};

/* The version of Landlock in this kernel; 0: none. The daemon needs version 2 (Linux 5.19). */
#define LANDLOCK_ABI_NEEDED 2
int landlock_abi(void);

/* For the calling thread, and the threads that it starts later: only these paths and reading /proc. All others exist,
 * but can't be opened, created or removed. No TCP (from version 4 on). The thread must have no_new_privs. 0 or -errno;
 * -EOPNOTSUPP: the kernel has no Landlock, or an older one. */
int landlock_enter(const struct landlock_paths *paths);

#endif
