// SPDX-License-Identifier: BSD-2-Clause
/* The checker's records of the program's objects: one for each, found by the address of the object. All functions
 * but records_lock want the lock, which is one for all records. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_RECORDS_H
#define PUMICE_SRC_CHECK_OBJECTS_RECORDS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "src/check/base/trace.h"
#include "src/check/objects/connection.h"
#include "src/check/objects/request.h"

enum kind { KIND_CONTEXT, KIND_PD, KIND_CHANNEL, KIND_CQ, KIND_SRQ, KIND_QP, KIND_MR, KIND_AH, KIND_TD, KINDS };

/* The beginning of each record. */
struct record {
    const void *object;
    enum kind kind;
    bool busy; /* a destroy call failed with EBUSY */
    unsigned generation; /* records of an earlier one belong to the parent of this process */
    const struct trace *where; /* the place in the program that made the object, or that failed to destroy it */
    UT_hash_handle hh;
};

struct td_record {
    struct record r;
    unsigned inside; /* calls that use its objects at the moment */
    const void *thread; /* of the last call */
    const struct trace *where; /* of that */
};

struct pd_record {
    struct record r;
    struct td_record *td; /* NULL: it is no parent domain with a thread domain */
};

struct cq_record {
    struct record r;
    struct ibv_cq *cq;
    struct td_record *td; /* NULL: none */
    uint32_t coming; /* completions that may still come: of signaled sends, and of receive requests */
    bool armed, unsafe; /* unsafe: completions could come before the CQ was armed, and no poll looked for them since */
    const struct trace *armed_at;
    uint32_t events, acked;
    const struct trace *event_at; /* where the program took the last event */
    /* The functions of an extended CQ that are replaced; else NULL. */
    int (*start_poll)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);
    int (*next_poll)(struct ibv_cq_ex *);
};

struct srq_record {
    struct record r;
    const struct ibv_cq *cq; /* of an XRC domain: its completions come there. NULL: to the CQs of its queue pairs */
    struct request_queue queue;
};

struct peer;

struct qp_record {
    struct record r;
    struct ibv_qp *qp;
    struct qp_number {
        const struct ibv_context *context;
        uint64_t qpn;
    } number;
    UT_hash_handle by_number;
    struct td_record *td; /* NULL: none */
    bool all_signaled; /* sq_sig_all */
    bool failed; /* a completion said so */
    const struct trace *failed_at; /* where that was polled */
    uint8_t port; /* 0: not set yet */
    struct connection connection;
    struct peer *own; /* of peers.h; NULL: none */
    const struct peer *other; /* of the peer; NULL: not found yet */
    uint64_t receives_posted; /* since it was reset */
    struct request_queue sends, receives;
};

struct mr_record {
    struct record r;
    struct mr_key {
        const struct ibv_context *context;
        uint64_t lkey;
    } key;
    UT_hash_handle by_key;
    uint64_t addr, length; /* as requests name its bytes */
    uint64_t memory; /* where these are in the program; 0: they are not, or not known */
    bool may_guard; /* guard.h */
    unsigned access;
    uint32_t rkey;
};

void records_lock(void);
void records_unlock(void);
/* This process is a new child: the records are its parent's. */
void records_forked(void);

/* NULL: the checker does not know the object. Reports the use of a parent's object (RULE_FORK) by this caller. */
void *record_find(enum kind kind, const void *object, const void *caller);
/* Makes a record of this size, zeroed. NULL: no memory, or the object is NULL. */
void *record_add(enum kind kind, const void *object, size_t size, const struct trace *where);
/* The object was destroyed (rc 0), or not. */
void record_destroyed(struct record *r, int rc, const struct trace *where);

/* Calls fn for all records of a kind. It must not remove any. */
void records_each(enum kind kind, void (*fn)(void *record, void *arg), void *arg);

/* The record of a new QP. NULL: no memory, or no QP. */
struct qp_record *record_add_qp(struct ibv_qp *qp, const struct trace *where);
/* Has it failed, or does it not work any more? Then the device is done with the memory of its requests. */
bool qp_is_done(const struct qp_record *q);
/* The QP of a completion. NULL: unknown. */
struct qp_record *record_of_qpn(const struct ibv_context *context, uint32_t qpn);

/* The record of a new region, without its addresses. NULL: no memory, or no region. */
struct mr_record *record_add_mr(struct ibv_mr *mr, const struct trace *where);
/* Is there any region? Callers on any thread. */
bool regions_any(void);
/* The region of a local key. NULL: unknown. */
const struct mr_record *record_of_lkey(const struct ibv_context *context, uint32_t lkey);

/* The process ends: reports what is left (RULE_LEFT, RULE_BUSY). */
void records_end(void);

#endif
