// SPDX-License-Identifier: BSD-2-Clause
/* The connection management thread of the daemon. It owns the protocol instance of all devices (core/cm/cm.h), serves
 * the connections of clients, and exchanges MADs with the threads of the devices (device/mad_box.h). Without connections
 * it sleeps. */
#ifndef PUMICE_DAEMON_CM_CM_THREAD_H
#define PUMICE_DAEMON_CM_CM_THREAD_H

#include <ev.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "daemon/base/activity.h"
#include "daemon/base/error_text.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/loop_wake.h"
#include "daemon/cm/cm_client.h"
#include "daemon/cm/host/cm_host.h"
#include "daemon/device/mailbox.h"
#include "daemon/device/slice_box.h"
#include "daemon/threads/loop_activity.h"

#define CM_IDS_MAX 32768u /* that programs may have at once */
/* The instance has room for as many that programs destroyed, until their peers know of it and their QP numbers are
 * free. */
#define CM_ENDING_MAX 32768u

struct cm_thread {
    struct activity activity;
    struct cm_host host;
    struct cm_clients clients;
    struct mailbox mailbox; /* of the main thread */
    struct slice_box slices; /* of other threads, which read what the host has (cm_snapshot.h) */
    void *memory; /* of host.cm */
    size_t memory_size;
    struct takeover *thread;
    struct loop_wake arrived; /* MADs, or new addresses of devices */
    ev_timer timer; /* runs until the next deadline of the instance */
    ev_prepare turn_ends;
    struct loop_activity loop_activity; /* of the loop */
    struct wait_limit wait_limit;
    bool running, stop;
};

struct cm_thread_config {
    struct mad_box *box[PM_DEVICES_MAX]; /* of the devices, by their index */
    unsigned num_boxes;
    struct quota *quota;
    unsigned control_share; /* per cent, see control_turns.h */
    unsigned memory_timeout_ms; /* how long a call for a client's pipe may last */
};

/* Makes everything but the thread. Returns 0, or -errno with why; call cm_thread_fini also then. */
int cm_thread_init(struct cm_thread *t, const struct cm_thread_config *cfg, char why[ERROR_TEXT_MAX]);
/* Starts the thread, in the sandbox of the calling thread. Returns 0, or -errno with why. */
int cm_thread_start(struct cm_thread *t, char why[ERROR_TEXT_MAX]);
/* Ends all IDs, so that peers are told, and then the thread. The threads of the devices should still run. */
void cm_thread_stop(struct cm_thread *t);
void cm_thread_fini(struct cm_thread *t);

/* Hands a connection over that has sent a valid PM_OP_CM_OPEN. Does not wait. The thread sends the answer. Returns 0, or
 * -ENOMEM: then the socket is still the caller's. */
int cm_thread_take(struct cm_thread *t, int sock, const struct ucred *cred);

/* Runs a job in the thread and waits for it (slice_box.h). If the thread does not run, runs it here. */
bool cm_thread_slice(struct cm_thread *t, struct slice_job *job, uint64_t wait_ns);

/* One turn of the loop without the thread, for tests. */
void cm_thread_turn(struct cm_thread *t);

#endif
