// SPDX-License-Identifier: BSD-2-Clause
/* A client without the library. It speaks to the control socket itself, and has the shared memory of its objects. No
 * function ends the program: a hostile member goes on when the daemon refuses a request. */
#ifndef PUMICE_TESTS_SOAK_HOSTILE_RAW_H
#define PUMICE_TESTS_SOAK_HOSTILE_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"

struct raw_reply {
    int status; /* 0 or -errno; -EPIPE: the connection has ended */
    int fd[PM_FDS_MAX]; /* the receiver of the reply closes them */
    unsigned fds;
    uint32_t len;
    _Alignas(8) char payload[PM_MSG_MAX];
};

/* Connects to $PUMICE_SOCKET. -1: no. */
int raw_connect(void);
/* Sends a request with n descriptors. wait: until the daemon takes it. */
bool raw_send(int sock, uint32_t op, const void *rq, uint32_t len, const int *fd, unsigned n, bool wait);
/* Sends a request and waits for the reply. reply NULL: the caller wants the status only. */
int raw_call(int sock, uint32_t op, const void *rq, uint32_t len, struct raw_reply *reply);
void raw_close_fds(struct raw_reply *reply);

struct raw_session {
    int sock, doorbell; /* doorbell: the eventfd */
    struct pm_session_page *page;
    uint8_t gid[16];
    uint32_t pd, cq;
    uint32_t key; /* of memory */
    uint8_t *memory; /* RAW_MEMORY bytes */
    struct pm_cq_page *cq_page;
    size_t cq_size;
};
#define RAW_MEMORY (1u << 20)
#define RAW_CQE 1024u
/* Opens a device, with a PD, a region and a CQ. */
bool raw_open(struct raw_session *s, uint32_t device);
void raw_close(struct raw_session *s);

struct raw_qp {
    struct pm_create_qp_rep rep;
    uint8_t *base; /* rep.size bytes, a struct pm_qp_page at the start */
};
/* Makes an RC QP with wr requests. mapped: with its rings. */
bool raw_qp(struct raw_session *s, uint32_t wr, bool mapped, struct raw_qp *qp);
/* Moves it from any state to RTS, connected to QP dest of the same device. */
bool raw_connect_qp(struct raw_session *s, uint32_t qpn, uint32_t dest);
/* Rings doorbell d. */
void raw_ring(struct raw_session *s, uint32_t d);

#endif
