// SPDX-License-Identifier: BSD-2-Clause
/* The files that the checker writes in the processes of a run. src/check/report.h explains them. */
#ifndef PUMICE_SRC_CMD_CHECK_REPORTS_H
#define PUMICE_SRC_CMD_CHECK_REPORTS_H

#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#define REPORT_DEPTH 8u
#define REPORT_TEXT_MAX 512

/* A backtrace. */
struct report_trace {
    unsigned id;
    unsigned n;
    struct report_call {
        char *module; /* owned */
        uint64_t offset;
    } at[REPORT_DEPTH];
    UT_hash_handle hh;
};

struct report_finding {
    char rule[32];
    char whose[64];
    char text[REPORT_TEXT_MAX];
    uint64_t count;
    unsigned where, other; /* backtraces; 0: none */
    unsigned other_pid; /* the process of the other one */
};

/* src/check/connect/tables.h explains the members of these. Backtraces are 0 if there is none. */
struct report_connection {
    uint64_t context, since;
    unsigned qpn, type, peer, path_mtu, rq_psn, dest_rd_atomic, access, sq_psn, rd_atomic;
    unsigned where, ready_at, access_at;
    char gid[33], peer_gid[33];
};

struct report_region {
    uint64_t context, since, until, addr, length; /* until 0: it is registered */
    unsigned rkey, access;
    unsigned where, gone_at;
};

struct report_failure {
    uint64_t time, context, wr_id, addr, length;
    unsigned qpn, status, opcode, rkey;
    unsigned where;
};

/* The region that has a key at the moment, while the lines are read. */
struct report_key {
    struct {
        uint64_t context, rkey;
    } key;
    size_t region; /* its place in the list */
    UT_hash_handle hh;
};

/* The report of one process. */
struct report {
    unsigned pid;
    struct report_trace *traces; /* by id */
    struct report_finding *findings; /* [n_findings], owned */
    size_t n_findings;
    struct report_connection *connections; /* [n_connections], owned */
    size_t n_connections;
    struct report_region *regions; /* [n_regions], owned */
    size_t n_regions;
    struct report_key *keys; /* owned */
    struct report_failure *failures; /* [n_failures], owned */
    size_t n_failures;
};

struct reports {
    struct report *list; /* [n], owned */
    size_t n;
};

/* Reads the files of a directory. Files and lines in another form are left out. Returns 0, or -ENOMEM, or the error of the
 * directory. */
int reports_read(struct reports *all, const char *dir);
void reports_free(struct reports *all);

/* Adds a finding, or sets the count of that with the same rule and place. Returns 0 or -ENOMEM. */
int report_add_finding(struct report *r, const struct report_finding *f);

/* NULL: there is none. */
const struct report_trace *reports_trace(const struct reports *all, unsigned pid, unsigned id);

#endif
