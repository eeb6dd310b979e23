// SPDX-License-Identifier: BSD-2-Clause
/* The command's side of a control connection (include/pumice/abi.h). Sends requests, receives replies, and reads the
 * documents (JSON in a memfd) that daemons return. */
#ifndef PUMICE_SRC_CMD_COMMON_CONTROL_H
#define PUMICE_SRC_CMD_COMMON_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"

/* Connects to the daemon at path. Returns a descriptor, or -errno. */
int control_open(const char *path);

/* One request and its reply. */
struct control_call {
    uint32_t op; /* enum pm_op */
    const void *req; /* payload of the request */
    uint32_t req_len;
    void *rep; /* payload of the reply */
    uint32_t rep_len; /* in: room in rep; out, on success: bytes received */
    int *fd; /* out: the first descriptor of the reply, or -1; NULL: the caller wants none */
    char why[PM_WHY_MAX]; /* out: the daemon's error message, or "" */
};

/* Sends a request and waits for its reply. Returns 0, or -errno: an error of the daemon or of the connection. */
int control_call(int sock, struct control_call *call);

/* Prints the daemon's error message (why). If it is "", prints "no answer at PATH: …" with a hint for this error. */
void control_explain(const char *path, int err, const char *why);

/* Writes to out a sentence about the users that may connect to the daemon. It is for a user that may not connect. */
void control_users(const char *path, char *out, size_t size);

/* Requests the document of op from the daemon at path. req has len bytes. Returns the document, which the caller
 * releases by json_decref. Returns NULL after printing an error. */
json_t *control_fetch(const char *path, uint32_t op, const void *req, uint32_t len);
/* Like control_fetch, but prints no error. */
json_t *control_fetch_quietly(const char *path, uint32_t op, const void *req, uint32_t len);

#endif
