// SPDX-License-Identifier: BSD-2-Clause
/* Connection management of the daemon: one protocol instance for all devices (core/cm/cm.h), the channels of clients,
 * and the numbers of their IDs. Only the connection management thread uses it (cm/cm_thread.h). */
#ifndef PUMICE_DAEMON_CM_HOST_CM_HOST_H
#define PUMICE_DAEMON_CM_HOST_CM_HOST_H

#include <ev.h>
#include <sys/queue.h>

#include "daemon/base/handles.h"
#include "daemon/base/quota.h"
#include "daemon/cm/host/cm_devices.h"
#include "daemon/cm/host/cm_failures.h"
#include "daemon/device/memory_strikes.h"

struct cm_channel;
TAILQ_HEAD(cm_channel_list, cm_channel);
LIST_HEAD(cm_channel_bucket, cm_channel);
#define CM_CHANNEL_BUCKETS 1024u
struct takeover;

struct cm_host {
    struct cm *cm;
    struct cm_devices devices;
    struct quota *quota; /* NULL: nothing is counted (tests) */
    struct ev_loop *loop;
    struct handles ids; /* struct ucma_id, by the number that the program has */
    struct handles joins; /* struct ucma_join, by the number that the program has */
    struct cm_channel_list channels;
    struct cm_channel_bucket by_token[CM_CHANNEL_BUCKETS]; /* the same ones, by the lowest bits of their tokens */
    struct cm_channel_list ending; /* those whose IDs are being destroyed */
    ev_idle ends; /* active while `ending` is not empty */
    struct cm_failures failures;
    struct takeover *thread; /* makes the calls for pipes; NULL: the calling thread */
    unsigned pipe_limit_ms; /* how long such a call may last */
    struct memory_strikes strikes; /* of users whose memory did not answer */
};

#endif
