// SPDX-License-Identifier: BSD-2-Clause
/* Completion counters of clients. The engine counts; the daemon writes each new value to the session page, where the
 * client reads it without a system call. The daemon never reads these values from the page. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_COMP_CNTR_H
#define PUMICE_DAEMON_OBJECTS_QP_COMP_CNTR_H

#include <stdint.h>

#include "daemon/core/engine.h"

struct control_reply;
struct device;
struct session;

struct client_comp_cntr {
    struct session *session;
    uint32_t handle; /* 1 more than its place in pm_session_page.comp_cntr */
    struct comp_cntr cntr;
};

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int comp_cntr_create(struct session *s, const void *rq, struct control_reply *rp);
int comp_cntr_destroy(struct session *s, const void *rq, struct control_reply *rp);
int comp_cntr_modify(struct session *s, const void *rq, struct control_reply *rp);
int comp_cntr_attach_qp(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a counter that no QP uses. */
void comp_cntr_free(struct client_comp_cntr *c);

/* Publishes the new values of the device's counters, and wakes the clients that wait for them. To be called after
 * deferred writes were carried out. */
void comp_cntrs_publish(struct device *d);

#endif
