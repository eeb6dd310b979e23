// SPDX-License-Identifier: BSD-2-Clause
/* Stops the daemon, so that a test can do something before the daemon sees any of it. SIGCONT lets it go on. */
#ifndef PUMICE_TESTS_VERBS_STOP_H
#define PUMICE_TESTS_VERBS_STOP_H

#include <dirent.h>
#include <signal.h>

#include "tests/verbs/vt.h"

static inline bool vt_thread_stopped(pid_t pid, const char *tid)
{
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", (int)pid, tid);
    FILE *f = fopen(path, "r");
    bool stopped = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'T';
    if (f)
        fclose(f);
    return stopped;
}

/* kill() returns before the threads of the daemon have stopped. Each may still take a request from a ring. So this waits
 * for them. */
static inline void vt_stop_daemon(pid_t pid)
{
    char path[64];
    bool all = false;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    need(kill(pid, SIGSTOP) == 0);
    while (!all) {
        DIR *tasks = opendir(path);
        need(tasks != NULL);
        all = true;
        for (struct dirent *e; (e = readdir(tasks));)
            all = all && (e->d_name[0] == '.' || vt_thread_stopped(pid, e->d_name));
        closedir(tasks);
    }
}

#endif
