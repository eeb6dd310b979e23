// SPDX-License-Identifier: BSD-2-Clause
/* Which daemons a subcommand is about: one daemon, or the hosts of a lab. */
#ifndef PUMICE_SRC_CMD_COMMON_TARGETS_H
#define PUMICE_SRC_CMD_COMMON_TARGETS_H

#define SOCKET_PATH_MAX 108 /* sizeof(sun_path) */
#define HOSTS_MAX 254 /* of a lab: a host's number plus one is the last byte of its address */

/* The daemons that a subcommand is about: those of a lab, or one daemon. */
struct targets {
    unsigned n;
    int first; /* number of the first host; -1: not a lab */
    const char *lab; /* directory of the lab; NULL: not a lab */
    char socket[SOCKET_PATH_MAX]; /* of the one daemon, if this is not a lab */
};

/* Chooses the daemons. The first of these that is there counts: socket (the argument of an option; NULL: not given);
 * the lab in the environment, either all its hosts or, if host is not -1, this host; PUMICE_SOCKET; the default paths.
 * Returns 0, or -1 after printing an error. */
int targets_find(struct targets *t, const char *socket, int host);
/* Writes the path of the i-th control socket to out, which has SOCKET_PATH_MAX bytes. */
void targets_socket(const struct targets *t, unsigned i, char *out);

/* The directory of the lab in the environment, and the number of its hosts. Returns NULL if there is no lab, or if the
 * environment is inconsistent, after printing an error. */
const char *targets_env_lab(unsigned *hosts);
/* Writes "dir/hostN.sock" to out, which has SOCKET_PATH_MAX bytes. Returns -1 if the path is too long. */
int targets_lab_socket(const char *dir, unsigned host, char *out);

#endif
