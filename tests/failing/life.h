// SPDX-License-Identifier: BSD-2-Clause
/* The life of a session: a program opens a device, makes one object of each kind, connects, sends, and gives everything
 * back. Any step may fail, because calls of the daemon fail meanwhile. */
#ifndef PUMICE_TESTS_FAILING_LIFE_H
#define PUMICE_TESTS_FAILING_LIFE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* The other host, whose daemon is not disturbed. It stays open. */
struct life_peer {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    union ibv_gid gid;
};

/* The result of a life. */
struct life_result {
    const char *failed; /* the first step that reported an error; NULL: none */
    int error; /* its errno, or the status of its completion */
    /* A step that did something which must never happen: it hung, or it reported success and did nothing. NULL: none. */
    const char *wrong;
};

/* Opens the device of the daemon at that control socket. NULL: it can't be opened. */
struct ibv_context *life_open(const char *socket);
/* Returns false if the other host can't be used. */
bool life_peer_open(struct life_peer *peer, const char *socket);

/* Lives once, on the daemon at `socket`. */
struct life_result life_run(const char *socket, const struct life_peer *peer);

#endif
