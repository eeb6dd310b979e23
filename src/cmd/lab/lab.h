// SPDX-License-Identifier: BSD-2-Clause
/* Starts and stops a lab: private daemons, and a directory with their sockets and logs. Each daemon is a virtual host.
 * Each of its devices has an address of its own. */
#ifndef PUMICE_SRC_CMD_LAB_LAB_H
#define PUMICE_SRC_CMD_LAB_LAB_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cmd/common/targets.h"
#include "src/cmd/lab/address.h"
#include "src/cmd/lab/lab_dir.h"

#define LAB_PASS_MAX 32

struct lab_options {
    unsigned hosts;
    unsigned devices; /* of each host */
    /* Those of each device of each host in turn, separated by commas, and by + if a device has several; NULL: free ones
     * from 127.0.0.0/8. */
    const char *addresses;
    bool ipv6; /* without addresses: IPv6 ones, if necessary in a network namespace (namespace.h) */
    bool keep_logs; /* do not remove the directory with the logs */
    const char *net; /* plan of an emulated network, a text; NULL: none */
    bool spread_cpus; /* on a machine with few processors, bind each daemon to some */
    int decisions_fd[HOSTS_MAX]; /* memory for the daemon of each host; -1: none */
    unsigned num_pass;
    const char *pass[LAB_PASS_MAX]; /* options that each daemon gets unchanged */
};

struct lab_host {
    char addresses[DEVICES_MAX][ADDRESS_LIST_MAX]; /* of each device */
    pid_t pid; /* 0: not running */
    int ready; /* read end of the pipe on which the daemon reports that it is ready; -1: none */
};

struct lab {
    char dir[PATH_MAX]; /* "" : none */
    unsigned hosts, devices; /* devices of each host */
    bool keep_logs;
    bool starting; /* the daemons are starting: lab_start prints errors, and lab_ended prints none */
    bool stopping; /* the daemons got the signal to end */
    bool crashed; /* a daemon crashed, failed, or did not end when it was told to */
    struct lab_guard guard; /* removes the directory if this process is killed */
    struct lab_host host[HOSTS_MAX];
};

/* Starts the daemons and waits until all of them are ready. Returns 0, or -1 after printing an error and cleaning
 * up. */
int lab_start(struct lab *lab, const struct lab_options *options);

/* The caller passes each result of waitpid. If pid is one of the daemons, reports why it ended and returns true. */
bool lab_ended(struct lab *lab, pid_t pid, int status);

/* Ends the daemons and removes the directory, or only the sockets in it if the logs are kept. */
void lab_stop(struct lab *lab);

#endif
