// SPDX-License-Identifier: BSD-2-Clause
/* The library stands in for functions that may be called anywhere: before any constructor has run, in signal handlers, between fork and
 * exec. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "vt.h"

/* Calls each of those that may be called in a signal handler; false: one of them does not do what libc's does. */
static bool calls(void)
{
    static const char elf[4] = "\177ELF";
    char text[4];
    int fd = open("/proc/self/exe", O_RDONLY), again = openat(AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool held = fd >= 0 && again >= 0 && read(fd, text, 4) == 4 && memcmp(text, elf, 4) == 0;
    close(fd);
    close(again);
    errno = 0;
    return held && open("/no/such/file", O_RDONLY) == -1 && errno == ENOENT;
}

/* --- before any constructor ------------------------------------------------------------------------------------------- */
static bool before_constructors;

/* In a program of its own: what is called here has been looked up then. */
static void begin(int argc, char **argv, char **env)
{
    (void)argv;
    (void)env;
    if (argc > 1)
        before_constructors = calls();
}
__attribute__((section(".preinit_array"), used)) static void (*const at_first)(int, char **, char **) = begin;

/* --- while the loader is at work -------------------------------------------------------------------------------------- */
/* As for a signal handler that interrupts dlopen: it has the loader's lock, and waits for what a pipe does not tell. */
static void *loads(void *pipe)
{
    dlclose(dlopen(pipe, RTLD_NOW) ?: dlopen(NULL, RTLD_NOW));
    return NULL;
}

static void late(int signal)
{
    static const char text[] = "not ok - called while a library is loaded: they wait for the loader\n";
    (void)signal;
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(1);
}

/* The first calls of all: what is looked up then has not been looked up before. */
static void while_loading(void)
{
    char pipe[64];
    pthread_t loader;
    int end = -1;
    snprintf(pipe, sizeof(pipe), "%s/test_next.%d", P_tmpdir, (int)getpid());
    need(mkfifo(pipe, 0600) == 0 && pthread_create(&loader, NULL, loads, pipe) == 0);
    for (double limit = vt_now() + 20; end < 0 && vt_now() < limit; usleep(1000)) /* until it reads */
        end = (int)syscall(SYS_openat, AT_FDCWD, pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    need(end >= 0);
    unlink(pipe);
    signal(SIGALRM, late);
    alarm(20);
    ok(calls(), "called while a library is loaded");
    alarm(0);
    close(end);
    pthread_join(loader, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return before_constructors && calls() ? 0 : 1;
    while_loading();
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "early", (char *)NULL);
        _exit(1);
    }
    int status = -1;
    ok(waitpid(child, &status, 0) == child && status == 0, "called before any constructor, and then");
    return vt_failed;
}
