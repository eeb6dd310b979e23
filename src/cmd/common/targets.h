// SPDX-License-Identifier: BSD-2-Clause
/* Which daemons a subcommand is about: one daemon, or the hosts of a lab. */
#ifndef PUMICE_SRC_CMD_COMMON_TARGETS_H
#define PUMICE_SRC_CMD_COMMON_TARGETS_H

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
const char *targets_env_lab(unsigned *hosts);
/* dir/hostN.sock to out, of which there are SOCKET_PATH_MAX bytes; -1 if it is too long. */
int targets_lab_socket(const char *dir, unsigned host, char *out);

#endif
