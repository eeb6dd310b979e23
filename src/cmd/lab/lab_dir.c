// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/lab/lab_dir.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/targets.h"

#define LOG_TAIL 4096 /* bytes of a log to show after its daemon failed */

/* --- the directory ------------------------------------------------------------------------------------------------ */

void lab_dir_log_path(const char *dir, unsigned host, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s/host%u.log", PATH_MAX - 32, dir, host);
}

void lab_dir_net_path(const char *dir, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s/net", PATH_MAX - 32, dir);
}

void lab_parent_dirs(const char *out[LAB_PARENT_DIRS])
{
    out[0] = getenv("XDG_RUNTIME_DIR");
    out[1] = getenv("TMPDIR");
    out[2] = "/tmp";
    for (unsigned i = 0; i < LAB_PARENT_DIRS; i++)
        if (out[i] && out[i][0] != '/')
            out[i] = NULL;
}

int lab_dir_make(char dir[PATH_MAX])
{
    const char *parents[LAB_PARENT_DIRS];
    char socket[SOCKET_PATH_MAX];

    lab_parent_dirs(parents);
    for (unsigned i = 0; i < LAB_PARENT_DIRS; i++) {
        if (!parents[i])
            continue;
        snprintf(dir, PATH_MAX, "%s/" LAB_PREFIX "XXXXXX", parents[i]);
        /* mkdtemp makes it with mode 0700. */
        if (targets_lab_socket(dir, HOSTS_MAX, socket) == 0 && mkdtemp(dir))
            return 0;
    }
    dir[0] = 0;
    say("can't create a directory for the sockets in XDG_RUNTIME_DIR, TMPDIR or /tmp: set TMPDIR to a short path that "
        "is writable");
    return -1;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    remove(path);
    return 0;
}

void lab_dir_remove(const char *dir)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void lab_dir_remove_sockets(const char *dir, unsigned hosts)
{
    char path[SOCKET_PATH_MAX];

    for (unsigned i = 0; i < hosts; i++)
        if (targets_lab_socket(dir, i, path) == 0)
            unlink(path);
}

void lab_dir_show_log(const char *dir, unsigned host)
{
    char path[PATH_MAX], text[LOG_TAIL + 1], *line = text;

    lab_dir_log_path(dir, host, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    ssize_t n = size < 0 ? -1 : pread(fd, text, LOG_TAIL, size > LOG_TAIL ? size - LOG_TAIL : 0);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return;
    text[n] = 0;
    while (*line) {
        size_t len = strcspn(line, "\n");

        fprintf(stderr, "  host %u: %.*s\n", host, (int)len, line);
        line += len + (line[len] == '\n');
    }
}

/* --- the guard ---------------------------------------------------------------------------------------------------- */

/* The guard closes stdin, stdout and stderr of pumice run. Otherwise a reader of that output would also wait for the end
 * of the guard. */
static void guard_main(const char *dir, int pipe_end)
{
    const struct timespec grace = {.tv_nsec = 300000000};
    int null = open("/dev/null", O_RDWR);
    char c;

    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_NAME, "pumice-guard");
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    if (read(pipe_end, &c, 1) == 0) {
        nanosleep(&grace, NULL);
        lab_dir_remove(dir);
    }
    _exit(0);
}

void lab_guard_start(struct lab_guard *guard, const char *dir)
{
    int ends[2];

    guard->pipe = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    guard->pid = fork();
    if (guard->pid == 0) {
        close(ends[1]);
        guard_main(dir, ends[0]);
    }
    close(ends[0]);
    guard->pipe = ends[1];
}

void lab_guard_stop(struct lab_guard *guard)
{
    if (guard->pipe < 0)
        return;
    if (write(guard->pipe, "", 1) == 1 && guard->pid > 0)
        waitpid(guard->pid, NULL, 0);
    close(guard->pipe);
    guard->pipe = -1;
}
