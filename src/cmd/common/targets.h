// SPDX-License-Identifier: BSD-2-Clause
/* Finds the daemons that a subcommand works with: one daemon, or the hosts of a lab. */
#ifndef PUMICE_SRC_CMD_COMMON_TARGETS_H
#define PUMICE_SRC_CMD_COMMON_TARGETS_H

#define SOCKET_PATH_MAX 108 /* sizeof(sun_path) */
#define HOSTS_MAX 254 /* of a lab: a host's number plus one is the last byte of its address */

/* The daemons that a subcommand works with: those of a lab, or one daemon. */
struct targets {
    unsigned n;
    int first; /* number of the first host; -1: not a lab */
    const char *lab; /* directory of the lab; NULL: not a lab */
    char socket[SOCKET_PATH_MAX]; /* of the one daemon, if this is not a lab */
};

/* Chooses the daemons by the first of these that exists: socket (the argument of an option; NULL: not given), the lab
 * in the environment, PUMICE_SOCKET, the default paths. In a lab, host chooses one host, and -1 chooses all. Returns 0,
 * or -1 after printing an error. */
int targets_find(struct targets *t, const char *socket, int host);
/* Writes the path of the i-th control socket to out, which has SOCKET_PATH_MAX bytes. */
void targets_socket(const struct targets *t, unsigned i, char *out);

/* Returns the directory of the lab in the environment, and sets *hosts to the number of its hosts. Returns NULL if
 * there is no lab. If the environment is inconsistent, prints an error and returns NULL. */
const char *targets_env_lab(unsigned *hosts);
/* Writes "dir/hostN.sock" to out, which has SOCKET_PATH_MAX bytes. Returns -1 if the path is too long. */
int targets_lab_socket(const char *dir, unsigned host, char *out);

#endif
