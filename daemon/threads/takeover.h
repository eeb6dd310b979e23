// SPDX-License-Identifier: BSD-2-Clause
/* A thread that goes on when a system call does not return.
 *
 * Some system calls wait for something that another user controls, and nothing can interrupt them. An example is
 * process_vm_readv on a page that a FUSE server never delivers: no signal ends it, not even SIGKILL. So the function
 * runs on a stack of its own, and makes such calls by takeover_syscall. If a call lasts too long, another kernel thread
 * continues the function on that stack, as if the call had returned -ETIMEDOUT. The first kernel thread is lost: when
 * its call returns after all, it leaves the stack alone and ends.
 *
 * The kernel may still use the memory that the arguments of the lost call name. The owner makes that memory unreachable
 * in `replaced` (see client_mem/copier.h).
 *
 * The function may find itself in another kernel thread after takeover_syscall. So it must hold no lock across the call,
 * and no address of a thread-local variable. The compiler may keep the address of errno, so a C function that makes the
 * call does not use errno.
 *
 * This needs code for the processor: there is some for x86-64. On other processors, and with the sanitizers that know
 * the stacks of threads, the function runs in an ordinary thread and calls last as long as they last. */
#ifndef PUMICE_DAEMON_THREADS_TAKEOVER_H
#define PUMICE_DAEMON_THREADS_TAKEOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct takeover;

#define TAKEOVER_DOUBT_MS 50u /* after so long, the owner is asked whether a call may go on */

struct takeover_ops {
    /* The function. */
    void (*run)(void *arg);
    /* Gives rights up that threads inherit, such as filters of system calls. Runs in both kernel threads that
     * takeover_start makes: the one that executes the function, and the one that watches it and may continue it. All
     * later ones are children of the second. NULL: nothing. */
    void (*restrict_rights)(void *arg);
    /* Runs in each kernel thread before it executes the function, to set the properties of the thread. */
    void (*enter)(void *arg);
    /* Runs in another thread when a call has slept for TAKEOVER_DOUBT_MS, and again when it sleeps in another function of
     * the kernel: may it last until its limit? On false, its time is over. waits_in: that function; empty if the kernel
     * does not tell. NULL: each call may. */
    bool (*may_last)(void *arg, const char *waits_in);
    /* Runs in another thread while a call sleeps beyond its limit, again and again: may it still go on? waits_in: as above.
     * NULL: it may not. */
    bool (*may_go_on)(void *arg, const char *waits_in, uint64_t slept_ns);
    /* Runs in another thread while a call lasts too long: may the function be continued? On false, it is asked again a
     * little later. */
    bool (*prepare)(void *arg);
    /* The call is lost, and the function is about to continue: takes the memory of the call's arguments away. */
    void (*replaced)(void *arg);
};

/* Is there code for this processor? */
bool takeover_supported(void);

/* Starts the function. Its kernel threads get the attributes attr, and the caller's signal mask. Both tables must stay
 * valid. 0 or -errno. */
int takeover_start(struct takeover **out, const struct takeover_ops *ops, void *arg, const pthread_attr_t *attr);

/* Waits until the function has returned, and frees t. Kernel threads that are lost stay; they touch nothing of the
 * owner. */
void takeover_join(struct takeover *t);

/* Makes the system call nr with the arguments a[0 … 5]. To be called by the function only. Returns the result of the
 * kernel, which is -errno for an error. Returns -ETIMEDOUT if the call slept in the kernel for longer than limit_ms, or
 * for less if may_last forbade it, or for more if may_go_on allowed it. Then the call is lost. Time that a call works, or
 * waits for a processor, does not count. These times are kept to within about a quarter. */
long takeover_syscall(struct takeover *t, unsigned limit_ms, long nr, const long a[6]);

/* How many kernel threads are lost and still in their calls. */
unsigned takeover_lost(const struct takeover *t);

#endif
