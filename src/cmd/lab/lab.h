// SPDX-License-Identifier: BSD-2-Clause
/* A lab: private daemons, each of them a virtual host with an address of its own, and the directory with their
 * sockets and logs. */
#ifndef PUMICE_SRC_CMD_LAB_LAB_H
#define PUMICE_SRC_CMD_LAB_LAB_H

#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cmd/common/targets.h"

struct lab_options {
    unsigned hosts;
    const char *addresses; /* one for each host, separated by commas; NULL: from 127.0.0.0/8, whatever is free */
    bool keep_logs; /* leave the directory with the logs behind */
    bool spread; /* where processors are few, each daemon keeps to one */
    unsigned num_pass; /* options for each daemon, passed as they are */
    const char *pass[32];
};

struct lab_host {
    char address[INET6_ADDRSTRLEN];
    pid_t pid; /* 0: not running */
    int ready; /* read end of the pipe in which the daemon says that it is ready; -1: none */
};

struct lab {
    char dir[PATH_MAX]; /* "" : none */
    unsigned hosts;
    bool keep_logs;
    bool starting; /* what befalls a daemon is said by who starts it */
    bool stopping; /* the daemons were told to end */
    bool crashed; /* a daemon ended by itself, with an error */
    pid_t guard; /* removes the directory if this process is killed */
    int guard_pipe;
    struct lab_host host[HOSTS_MAX];
};

/* Labs have their directories in one of these, called LAB_PREFIX and six letters or digits. NULL: not this one. The texts
 * are the environment's. */
#define LAB_PLACES 3
#define LAB_PREFIX "pumice-lab-"
void lab_places(const char *out[LAB_PLACES]);

/* Starts the daemons and waits until all of them are ready. 0, or -1 after saying why; nothing is left behind then. */
int lab_start(struct lab *lab, const struct lab_options *options);

/* To be called with what waitpid returned. If pid is one of the daemons, which should not have ended, says so and
 * returns true. */
bool lab_ended(struct lab *lab, pid_t pid, int status);

/* Ends the daemons and removes the directory. */
void lab_stop(struct lab *lab);

#endif
