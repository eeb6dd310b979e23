// SPDX-License-Identifier: BSD-2-Clause
/* Protection domains (PDs): allocation and deallocation. A PD that objects still use can't be deallocated. */
#ifndef PUMICE_DAEMON_OBJECTS_PD_H
#define PUMICE_DAEMON_OBJECTS_PD_H

#include <stdint.h>

struct session;
struct control_reply;

struct pd { /* protection domain */
    struct session *session;
    uint32_t number; /* the handle; unique on the device */
    unsigned users; /* objects that use it */
};

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int pd_alloc(struct session *s, const void *rq, struct control_reply *rp);
int pd_dealloc(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a PD that no object uses. */
void pd_free(struct pd *pd);

#endif
