// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows (MWs): allocation and deallocation. A bind is a send request, which the engine executes. */
#ifndef PUMICE_DAEMON_OBJECTS_MW_H
#define PUMICE_DAEMON_OBJECTS_MW_H

#include <stdint.h>

struct pd;
struct session;
struct control_reply;

struct mw { /* memory window */
    struct pd *pd;
    uint32_t key; /* the key at allocation; its upper 24 bits never change */
    uint8_t type; /* enum mw_type */
    uint32_t max_entries; /* of a layout; 0: the window can't be bound to layouts */
    void *shape; /* memory of the engine, for layouts; NULL: none */
};

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int mw_alloc_window(struct session *s, const void *rq, struct control_reply *rp);
int mw_dealloc_window(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a window, whether it is bound or not. */
void mw_free(struct session *s, struct mw *mw);

#endif
