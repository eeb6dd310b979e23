// SPDX-License-Identifier: BSD-2-Clause
/* A thread that waits for a spin lock yields. The library replaces pthread_spin_lock of the C library. With that function,
 * a thread spins for its whole time slice while the thread that holds the lock waits for a processor.
 *
 * UCX guards its objects by such a lock against its helper thread, which holds it while it allocates memory and makes
 * queue pairs. In a job of 64 ranks on two processors, the ranks spent a quarter to half of all time in this loop. */
#ifndef PUMICE_SRC_VERBS_SHIM_SPIN_LOCK_H
#define PUMICE_SRC_VERBS_SHIM_SPIN_LOCK_H

/* After so many attempts, a few microseconds, the thread yields. Critical sections of a running thread are shorter. */
#define VB_SPIN_ATTEMPTS 200u

#endif
