// SPDX-License-Identifier: BSD-2-Clause
/* The connections that a capture's REQ messages ask for, and how they are found: by address and communication ID, by
 * transaction ID, by a queue pair of them. A SIDR_REQ makes an entry, too, without a passive QP. */
#ifndef PUMICE_PCAP_LINT_BASE_LINT_CM_TABLE_H
#define PUMICE_PCAP_LINT_BASE_LINT_CM_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "wire/cm_msg.h"

#define LINT_CM_ATTRIBUTES (CM_APR - CM_REQ + 1)

enum lint_cm_side {
    LINT_CM_ACTIVE, /* sent the REQ or SIDR_REQ */
    LINT_CM_PASSIVE,
};

/* The messages of one kind that one side of a connection sent. */
struct lint_cm_sent {
    uint32_t n; /* number of times; copies that the network made do not count */
    uint32_t mad; /* index in lint.mads of the first one */
    uint32_t psn; /* the packet of the newest one */
    uint64_t time_ns; /* when the newest one was captured */
};

struct lint_cm_end {
    uint32_t comm_id;
    bool has_id; /* comm_id, qpn and first_psn are known */
    uint32_t qpn;
    uint32_t first_psn; /* of the requests that this side sends: the other side's message has it */
    bool started; /* the capture has a request of this side */
    uint32_t closed; /* frame of its first DREQ or DREP; 0: none */
    bool reported; /* a violation of its data was reported */
    uint64_t response_ns; /* the time that its peer has to answer a message; 0: not known */
    struct lint_cm_sent sent[LINT_CM_ATTRIBUTES];
};

/* Two GIDs and a number, without padding. */
struct lint_cm_key {
    uint8_t active[16], passive[16];
    uint32_t id; /* communication ID of the active side, or request ID */
    uint32_t sidr; /* 1: a request ID */
};
struct lint_cm_tid_key {
    uint8_t active[16], passive[16];
    uint64_t tid;
};

struct lint_cm_conn {
    struct lint_cm_key key;
    struct lint_cm_tid_key tid_key;
    UT_hash_handle by_id, by_tid;
    struct lint_cm_conn *next; /* all connections, also those that a newer one has replaced in the tables */
    uint32_t frame; /* of the first REQ */
    uint8_t max_retries;
    bool xrc;
    bool ready; /* the capture has an RTU */
    struct lint_cm_end end[2]; /* by enum lint_cm_side */
};

/* A queue pair of the newest connection that has it. */
struct lint_cm_qp_key {
    uint8_t address[16];
    uint32_t qpn;
};
struct lint_cm_qp {
    struct lint_cm_qp_key key;
    UT_hash_handle hh;
    struct lint_cm_conn *conn;
    enum lint_cm_side side;
};

struct lint_cm_table {
    struct lint_cm_conn *all, *by_id, *by_tid;
    struct lint_cm_qp *qps;
};

/* Adds a connection, which replaces another one with the same communication ID. NULL: no memory. */
struct lint_cm_conn *lint_cm_add(struct lint_cm_table *t, const struct lint_cm_key *key, uint64_t tid);
/* NULL: there is none. */
struct lint_cm_conn *lint_cm_find(const struct lint_cm_table *t, const uint8_t active[16], const uint8_t passive[16],
                                  uint32_t id, bool sidr);
struct lint_cm_conn *lint_cm_find_tid(const struct lint_cm_table *t, const uint8_t active[16],
                                      const uint8_t passive[16], uint64_t tid);
/* Notes that a side of a connection has this QP. False: no memory. */
bool lint_cm_add_qp(struct lint_cm_table *t, const uint8_t address[16], uint32_t qpn, struct lint_cm_conn *conn,
                    enum lint_cm_side side);
struct lint_cm_qp *lint_cm_find_qp(const struct lint_cm_table *t, const uint8_t address[16], uint32_t qpn);
void lint_cm_table_free(struct lint_cm_table *t);

#endif
