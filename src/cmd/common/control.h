// SPDX-License-Identifier: BSD-2-Clause
/* The command's side of a control connection (include/pumice/abi.h): requests and their replies, and the documents (JSON
 * in a memfd) that daemons give out. */
#ifndef PUMICE_SRC_CMD_COMMON_CONTROL_H
#define PUMICE_SRC_CMD_COMMON_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"

/* Connects to the daemon at path. A descriptor, or -errno. */
int control_open(const char *path);

/* One request and its reply. Returns the reply's status: 0, or -errno of the daemon, or of the connection; why then
 * holds a text for people ("" if there is none). On success *rep_len, in: room in rep, out: bytes received; *fd
 * receives the first descriptor that came (-1: none), if fd is not NULL. */
struct control_call {
    uint32_t op; /* enum pm_op */
    const void *req; /* payload */
    uint32_t req_len;
    void *rep;
    uint32_t rep_len;
    int *fd;
    char why[PM_WHY_MAX];
};
int control_call(int sock, struct control_call *call);

/* Says what the daemon said (why), or if that is "": "no answer at PATH: …" with a hint for each cause. */
void control_explain(const char *path, int err, const char *why);
/* Who may connect, to out: a sentence for somebody who may not. */
void control_users(const char *path, char *out, size_t size);

/* Asks the daemon at path for the document that op gives, with len bytes of request. NULL after saying what is wrong;
 * else the caller's, for json_decref. */
json_t *control_fetch(const char *path, uint32_t op, const void *req, uint32_t len);
/* The same, but nobody is told what is wrong. */
json_t *control_fetch_quietly(const char *path, uint32_t op, const void *req, uint32_t len);

#endif
