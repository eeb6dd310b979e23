// SPDX-License-Identifier: BSD-2-Clause
/* The directory of a lab, with the sockets and the logs of its daemons, and the guard that removes it. */
#ifndef PUMICE_SRC_CMD_LAB_LAB_DIR_H
#define PUMICE_SRC_CMD_LAB_LAB_DIR_H

#include <limits.h>
#include <sys/types.h>

/* The parent directories of labs, in order of preference. The name of a lab's directory is LAB_PREFIX and six letters
 * or digits. Unused entries are NULL. The texts belong to the environment. */
#define LAB_PARENT_DIRS 3
#define LAB_PREFIX "pumice-lab-"
void lab_parent_dirs(const char *out[LAB_PARENT_DIRS]);

/* Makes the directory, for this user only. Returns 0, or -1 after printing an error; dir is then "". */
int lab_dir_make(char dir[PATH_MAX]);
/* Removes the directory and all that is in it. */
void lab_dir_remove(const char *dir);
/* Removes the sockets of the hosts only. */
void lab_dir_remove_sockets(const char *dir, unsigned hosts);

/* Writes the path of the log of a host. */
void lab_dir_log_path(const char *dir, unsigned host, char out[PATH_MAX]);
/* The path of the plan of the emulated network. */
void lab_dir_net_path(const char *dir, char out[PATH_MAX]);
/* Prints the last lines of the log of a host on stderr. */
void lab_dir_show_log(const char *dir, unsigned host);

/* The guard is a child process that waits for the end of pumice run. If pumice run is killed, the guard removes the
 * lab's directory. (The daemons need no guard: the kernel sends them SIGTERM.) */
struct lab_guard {
    pid_t pid;
    int pipe; /* -1: there is no guard */
};
/* Starts the guard. Without memory or descriptors there is none. */
void lab_guard_start(struct lab_guard *guard, const char *dir);
/* Ends the guard, which then removes nothing. */
void lab_guard_stop(struct lab_guard *guard);

#endif
