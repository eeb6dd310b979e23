// SPDX-License-Identifier: BSD-2-Clause
/* The command's side of a control connection (include/pumice/abi.h), and which daemons a command is about. */
#ifndef PUMICE_CMD_CONTROL_H
#define PUMICE_CMD_CONTROL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"

#define SOCKET_PATH_MAX 108 /* sizeof(sun_path) */
#define HOSTS_MAX 254 /* of a lab: the last byte of an address */

/* The daemons that a command is about: those of the lab it runs in, or one. */
struct targets {
    unsigned n;
    int first; /* number of the first host; -1: not a lab */
    const char *lab; /* directory, if it is a lab */
    char socket[SOCKET_PATH_MAX]; /* the only one, if it is not a lab */
};

/* socket (an option's argument, NULL: not given) wins; then the lab in the environment, all of it or, if host is not
 * -1, one host of it; then PUMICE_SOCKET; then the default places. 0, or -1 after saying what is wrong. */
int targets_find(struct targets *t, const char *socket, int host);
/* Path of the i-th control socket to out, of which there are SOCKET_PATH_MAX bytes. */
void targets_socket(const struct targets *t, unsigned i, char *out);

/* Directory of the lab and its number of hosts by the environment; NULL if this is no lab or the environment is
 * broken, which is then said. */
const char *lab_from_env(unsigned *hosts);
/* dir/hostN.sock to out, of which there are SOCKET_PATH_MAX bytes; -1 if it is too long. */
int lab_socket(const char *dir, unsigned host, char *out);

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

#endif
