// SPDX-License-Identifier: BSD-2-Clause
/* The rights that the daemon takes away from itself, so that an attacker who takes it over gets little. It needs no service manager
 * and no rights for this.
 *
 * - All threads: no_new_privs, and a filter of system calls (seccomp.h).
 * - The main thread and the file thread (daemon/base/file_thread.h): rules for files (landlock.h).
 * - The threads of the devices change no files (seccomp.h). If the daemon reaches the memory of programs by
 *   /proc/PID/mem only, the rules for files hold for them, too.
 *
 * A kernel without one of these is no error: the daemon logs it, and its status shows it.
 *
 * The filters cost about 40 ns for each system call, with one filter or two (Linux 6.18, which remembers the calls that
 * are allowed with any arguments; an empty recvmmsg takes 410 ns without them). */
#ifndef PUMICE_DAEMON_SANDBOX_SANDBOX_H
#define PUMICE_DAEMON_SANDBOX_SANDBOX_H

#include <stdbool.h>

#include "daemon/sandbox/landlock.h"

struct sandbox_config {
    struct landlock_paths paths; /* the strings must stay valid */
    bool landlock_devices; /* the rules for files hold for the threads of the devices, too */
};

/* Begins the sandbox, in the main thread, before it starts any other. Creates paths.append, because the daemon can't
 * create it later. Without this call, the functions below do nothing. */
void sandbox_begin(const struct sandbox_config *config);

/* To be called by each thread of a device, before it handles anything. */
void sandbox_enter_device(void);

/* To be called by the file thread. */
void sandbox_enter_files(void);

/* Ends the start of the daemon: the main thread opens no more files than it needs to run. */
void sandbox_enter_main(void);

/* The state, for people: texts without an end of line. */
struct sandbox_state {
    const char *sandbox; /* "on", "off" */
    const char *seccomp; /* "on", "off", or why not */
    const char *landlock;
};
struct sandbox_state sandbox_state(void);

#endif
