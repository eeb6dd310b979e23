// SPDX-License-Identifier: BSD-2-Clause
/* The table by which messages find their ID: one hash table with several kinds of keys. The peers choose most of a key,
 * so the hash is secret. */
#ifndef PUMICE_DAEMON_CORE_CM_COMM_ID_H
#define PUMICE_DAEMON_CORE_CM_COMM_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/base/permute.h"

enum comm_kind {
    COMM_LOCAL = 1, /* number: the local communication ID */
    COMM_REMOTE, /* a: GUID of the peer's device; number: the peer's communication ID. Finds repeated REQs */
    COMM_REMOTE_QP, /* a: GUID of the peer's device; number: the peer's QP. Finds stale connections */
    COMM_SIDR, /* a, b: GID of the peer; number: the peer's request ID. Finds repeated SIDR_REQs */
};
struct comm_key {
    uint64_t a, b;
    uint32_t number;
    uint32_t kind; /* enum comm_kind; 0: not in the table */
};
/* Part of what is found. */
struct comm_node {
    struct comm_node *next;
    struct comm_key key;
};
struct comm_table {
    struct comm_node **bucket;
    uint32_t mask;
    struct permute_secret secret;
    uint32_t next_id; /* how many local communication IDs were given out */
    uint32_t used; /* nodes in the table */
};

/* Bytes of zeroed memory for comm_table_init. */
size_t comm_table_size(uint32_t max_nodes);
void comm_table_init(struct comm_table *t, void *mem, uint32_t max_nodes, const struct permute_secret *secret);
/* NULL: there is none. */
struct comm_node *comm_table_find(const struct comm_table *t, const struct comm_key *key);
/* False: the key is in the table already. The node must not be in it. */
bool comm_table_insert(struct comm_table *t, struct comm_node *n, const struct comm_key *key);
/* Also if the node is not in the table. */
void comm_table_remove(struct comm_table *t, struct comm_node *n);
/* A communication ID that is in no COMM_LOCAL key and is not 0. Peers can't tell it from earlier ones. */
uint32_t comm_table_new_id(struct comm_table *t);

#endif
