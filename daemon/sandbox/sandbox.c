// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/sandbox/seccomp.h"
#include "daemon/threads/file_thread.h"

/* Written by the main thread before it starts others, and read by all. */
static struct sandbox_config config;
static bool begun;
/* The first error of each part, as errno; 0: none. Any thread may find one. */
static _Atomic int seccomp_error, landlock_error;

static void note(_Atomic int *error, int rc, const char *what)
{
    int none = 0;

    if (rc && atomic_compare_exchange_strong(error, &none, -rc) && rc != -EOPNOTSUPP)
        log_write(LOG_DAEMON, LOG_LEVEL_WARN, "sandbox: %s: %s; the daemon runs without it", what, strerror(-rc));
}

static void enter_landlock(void)
{
    note(&landlock_error, landlock_enter(&config.paths), "no rules for files (Landlock)");
}

void sandbox_begin(const struct sandbox_config *c)
{
    config = *c;
    begun = true;
    if (c->paths.append && c->paths.append[0]) {
        int fd = open(c->paths.append, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

        if (fd >= 0)
            close(fd);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        note(&seccomp_error, -errno, "no_new_privs");
    else
        note(&seccomp_error, seccomp_daemon(), "no filter of system calls (seccomp)");
    int rc = file_thread_start(sandbox_enter_files);
    if (rc)
        log_write(LOG_DAEMON, LOG_LEVEL_ERROR, "sandbox: cannot start a thread: %s", strerror(-rc));
}

void sandbox_enter_device(void)
{
    if (begun)
        note(&seccomp_error, seccomp_device(), "no filter of system calls (seccomp)");
}

void sandbox_enter_files(void)
{
    if (begun)
        enter_landlock();
}

void sandbox_enter_main(void)
{
    if (begun)
        enter_landlock();
}

struct sandbox_state sandbox_state(void)
{
    int seccomp = atomic_load(&seccomp_error), landlock = atomic_load(&landlock_error);

    if (!begun)
        return (struct sandbox_state){"off", "off", "off"};
    return (struct sandbox_state){
        .sandbox = "on",
        .seccomp = seccomp ? strerrordesc_np(seccomp) : "on",
        .landlock = landlock == EOPNOTSUPP    ? "not supported: it needs Linux 5.19"
                    : landlock                ? strerrordesc_np(landlock)
                    : config.landlock_devices ? "on"
                                              : "on, but not for the threads of the devices",
    };
}
