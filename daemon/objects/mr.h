// SPDX-License-Identifier: BSD-2-Clause
/* Memory regions (MRs): registration, re-registration and deregistration. The engine keeps the keys. struct mr is the
 * daemon's own record of a region. */
#ifndef PUMICE_DAEMON_OBJECTS_MR_H
#define PUMICE_DAEMON_OBJECTS_MR_H

#include <stdint.h>

struct mr_file;
struct pd;
struct session;
struct control_reply;

struct mr { /* memory region */
    struct pd *pd;
    uint32_t key;
    uint64_t va, length; /* for status */
    uint32_t access;
    struct mr_file *file; /* its mapped file; NULL: none */
};

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int mr_reg(struct session *s, const void *rq, struct control_reply *rp);
int mr_rereg(struct session *s, const void *rq, struct control_reply *rp);
int mr_dereg(struct session *s, const void *rq, struct control_reply *rp);

/* Frees an MR that the engine no longer has. */
void mr_free(struct session *s, struct mr *mr);

#endif
