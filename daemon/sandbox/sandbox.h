// SPDX-License-Identifier: BSD-2-Clause
/* The rights that the daemon takes away from itself, so that an attacker who takes it over gets little. It needs no service manager
 * and no rights for this.
 *
 * - All threads: no_new_privs, and a filter of system calls (seccomp.h).
 * - All threads but those of the devices: rules for files (landlock.h).
 * - The threads of the devices change no files (seccomp.h). The rules for files keep a thread from process_vm_readv, so
 *   they hold for these threads only if the daemon can do without it (landlock_devices).
 *
 * A thread inherits the rules of the thread that starts it. So the order is:
 * 1. sandbox_begin, before there are other threads
 * 2. the threads of the devices, if the rules for files must not hold for them, and those that they need. These call
 *    sandbox_enter_device or sandbox_enter_files
 * 3. sandbox_enter_main
 * 4. all other threads
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
    /* The rules for files hold for the threads of the devices, too. They are started after sandbox_enter_main. */
    bool landlock_devices;
};

/* Begins the sandbox, in the main thread, before it starts any other. Creates paths.append, because the daemon can't
 * create it later. Without this call, the functions below do nothing. */
void sandbox_begin(const struct sandbox_config *config);

/* To be called by each thread of a device, before it handles anything. Threads that it starts inherit its rights. */
void sandbox_enter_device(void);

/* To be called by a thread that was started before sandbox_enter_main, and is not of a device. */
void sandbox_enter_files(void);

/* Ends the start of the daemon: the main thread, and the threads that it starts from now on, open no more files than
 * they need to run. */
void sandbox_enter_main(void);

/* The state, for people: texts without an end of line. */
struct sandbox_state {
    const char *sandbox; /* "on", "off" */
    const char *seccomp; /* "on", "off", or why not */
    const char *landlock;
};
struct sandbox_state sandbox_state(void);

#endif
