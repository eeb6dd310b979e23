// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/autostart.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/verbs/base/cancel.h"
#include "src/verbs/session/session.h"
#include "src/verbs/session/session_path.h"

extern char **environ;

/* The option of the daemon, unless the environment has it already. */
#define IDLE_EXIT "PUMICED_IDLE_EXIT"
#define IDLE_EXIT_SECONDS "30"

#define READY_FD 3
#define READY_MS 10000 /* a daemon is ready after some milliseconds; processors may be busy */
/* Another program starts a daemon at the same time, and the daemon of this one fails. Then that daemon will soon listen. */
#define OTHER_TRIES 100u
#define OTHER_WAIT_NS 20000000

static bool is_wanted(int error)
{
    const char *v = getenv(PM_ENV_AUTOSTART), *lab = getenv(PM_ENV_LAB);
    return (error == -ENOENT || error == -ECONNREFUSED) && v && strcmp(v, "1") == 0 && !(lab && *lab);
}

/* --- the program and its environment ----------------------------------------------------------- */

/* The daemon of this library's installation or build; otherwise one in PATH. */
static void find_daemon(char out[PATH_MAX])
{
    static const char *const places[] = {"../../bin/pumiced", "../../libexec/pumice/pumiced", "../../sbin/pumiced"};
    char path[2 * PATH_MAX], self[PATH_MAX];
    Dl_info info;
    if (dladdr((void *)(uintptr_t)&vb_autostart_connect, &info) == 0 || !realpath(info.dli_fname, self))
        self[0] = 0;
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, places[i]);
        if (realpath(path, out) && access(out, X_OK) == 0)
            return;
    }
    strcpy(out, "pumiced");
}

static bool has_name(const char *variable, const char *name)
{
    size_t n = strlen(name);
    return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

/* The environment of the daemon, which the caller frees: without the preloaded library. NULL: out of memory. */
static char **daemon_environment(void)
{
    static char idle_exit[] = IDLE_EXIT "=" IDLE_EXIT_SECONDS;
    size_t n = 0, k = 0;
    bool has_idle_exit = false;
    while (environ && environ[n])
        n++;
    char **out = calloc(n + 2, sizeof(*out));
    for (size_t i = 0; out && i < n; i++) {
        has_idle_exit |= has_name(environ[i], IDLE_EXIT);
        if (!has_name(environ[i], "LD_PRELOAD") && !has_name(environ[i], PM_ENV_AUTOSTART))
            out[k++] = environ[i];
    }
    if (out && !has_idle_exit)
        out[k] = idle_exit;
    return out;
}

/* --- starting ---------------------------------------------------------------------------------- */

/* The daemon gets no descriptor of this process: a pipe that it inherits would never end. */
static int set_files(posix_spawn_file_actions_t *files, int out)
{
    int rc = posix_spawn_file_actions_init(files);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDWR, 0) |
         posix_spawn_file_actions_adddup2(files, 0, 1) | posix_spawn_file_actions_adddup2(files, out, 2) |
         posix_spawn_file_actions_adddup2(files, out, READY_FD) |
         posix_spawn_file_actions_addclosefrom_np(files, READY_FD + 1);
    if (rc)
        posix_spawn_file_actions_destroy(files);
    return rc ? ENOMEM : 0;
}

/* A session of its own, so that no terminal ends it, and no blocked or ignored signals. */
static int set_signals(posix_spawnattr_t *attr)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_init(attr);
    if (rc)
        return rc;
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    return 0;
}

/* Starts the daemon through a shell that ends at once. So the daemon is no child of this process, which a program that
 * waits for any child would meet. Its log goes to `out`. socket NULL: its default place. Returns 0 or an errno value. */
static int spawn(const char *socket, int out)
{
    static char script[] = "\"$0\" \"$@\" &", sh[] = "sh", c[] = "-c", socket_option[] = "--socket",
                ready[] = "--ready-fd", ready_fd[] = "3";
    char daemon[PATH_MAX], path[PATH_MAX];
    char *argv[] = {sh, c, script, daemon, ready, ready_fd, socket ? socket_option : NULL, path, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    char **env = daemon_environment();
    pid_t pid;
    find_daemon(daemon);
    snprintf(path, sizeof(path), "%s", socket ? socket : "");
    int rc = env ? set_files(&files, out) : ENOMEM;
    if (rc) {
        free(env);
        return rc;
    }
    rc = set_signals(&attr);
    if (rc == 0) {
        rc = posix_spawn(&pid, "/bin/sh", &files, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    free(env);
    while (rc == 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

/* Reads until the daemon is ready. why: its last line before, without the prefix of its log. 0, or -errno: it has ended,
 * or is late. */
static int wait_ready(int from, char why[PM_WHY_MAX])
{
    char line[PM_WHY_MAX];
    size_t n = 0;
    struct pollfd f = {.fd = from, .events = POLLIN};
    why[0] = 0;
    while (poll(&f, 1, READY_MS) > 0) {
        ssize_t got = read(from, &line[n], 1);
        if (got <= 0)
            return -ECONNREFUSED;
        if (line[n] != '\n') {
            n += n < sizeof(line) - 1;
            continue;
        }
        line[n] = 0;
        n = 0;
        if (strcmp(line, "ready") == 0)
            return 0;
        const char *text = strstr(line, ": error: ");
        snprintf(why, PM_WHY_MAX, "%s", text ? text + strlen(": error: ") : line);
    }
    return -ETIMEDOUT;
}

static int start(const char *socket, char why[PM_WHY_MAX])
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -errno;
    int out = fcntl(pipes[1], F_DUPFD_CLOEXEC, READY_FD + 1); /* none of those that the daemon gets */
    int rc = out < 0 ? -errno : -spawn(socket, out);
    vb_close(pipes[1]);
    if (out >= 0)
        vb_close(out);
    if (rc == 0)
        rc = wait_ready(pipes[0], why);
    vb_close(pipes[0]);
    return rc;
}

/* --- connecting -------------------------------------------------------------------------------- */

/* Finds the path again if the process has no path of its own, because a daemon may have made it. */
static int connect_once(struct vb_session *s, const char *fixed, char *path, size_t size)
{
    int rc = fixed ? 0 : vb_session_path(path, size);
    return rc ? rc : vb_session_connect(s, fixed ? fixed : path);
}

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* of the threads that start a daemon */

void vb_autostart_in_child(void)
{
    pthread_mutex_init(&one, NULL);
}

static int reach(struct vb_session *s, const char *fixed, char *path, size_t size, char why[PM_WHY_MAX])
{
    why[0] = 0;
    int rc = connect_once(s, fixed, path, size);
    if (!is_wanted(rc))
        return rc;
    pthread_mutex_lock(&one);
    rc = connect_once(s, fixed, path, size);
    if (is_wanted(rc)) {
        const char *own = getenv(PM_ENV_SOCKET);
        bool started = start(fixed ? fixed : own && *own ? own : NULL, why) == 0;
        rc = connect_once(s, fixed, path, size);
        for (unsigned i = 0; is_wanted(rc) && !started && i < OTHER_TRIES; i++) {
            nanosleep(&(struct timespec){.tv_nsec = OTHER_WAIT_NS}, NULL);
            rc = connect_once(s, fixed, path, size);
        }
        if (rc == 0)
            why[0] = 0;
    }
    pthread_mutex_unlock(&one);
    return rc;
}

int vb_autostart_connect(struct vb_session *s, char *path, size_t size, char why[PM_WHY_MAX])
{
    int was = vb_cancel_off();
    int rc = reach(s, NULL, path, size, why);
    vb_cancel_restore(was);
    return rc;
}

int vb_autostart_connect_to(struct vb_session *s, const char *path, char why[PM_WHY_MAX])
{
    int was = vb_cancel_off();
    int rc = reach(s, path, NULL, 0, why);
    vb_cancel_restore(was);
    return rc;
}
