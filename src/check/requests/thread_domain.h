// SPDX-License-Identifier: BSD-2-Clause
/* Thread domains (ibv_alloc_td): the program promises that it does not use the objects of one from two threads at the same
 * time, so a library may leave out its locks. All functions want the lock of records.h. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_THREAD_DOMAIN_H
#define PUMICE_SRC_CHECK_REQUESTS_THREAD_DOMAIN_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "src/check/objects/records.h"

/* The program has made one, or is about to destroy it. */
void thread_domain_made(struct ibv_td *td, const struct trace *where);
void thread_domain_destroyed(const struct ibv_td *td, int rc, const struct trace *where);

/* The program has made a parent domain, maybe with a thread domain (NULL: without). */
void thread_domain_has_parent(struct ibv_pd *pd, const struct ibv_td *td, const struct trace *where);

/* That of the objects of a domain. NULL: none. */
struct td_record *thread_domain_of(const struct ibv_pd *pd);
/* Is there any? */
bool thread_domain_any(void);

/* A call uses an object of the thread domain (NULL: of none), until it leaves. */
void thread_domain_enter(struct td_record *td, const struct trace *where);
void thread_domain_leave(struct td_record *td);

#endif
