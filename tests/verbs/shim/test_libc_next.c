// SPDX-License-Identifier: BSD-2-Clause
/* The library replaces functions that may be called anywhere: before any constructor, in signal handlers, between
 * fork and exec, and under filters of system calls. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/verbs/vt.h"

/* Calls each of those that may be called in a signal handler; false: one of them does not do what libc's does. */
static bool calls(void)
{
    static const char elf[4] = "\177ELF";
    char text[4], again[4], wide[4], name[512];
    struct statx st;
    int fd = open("/proc/self/exe", O_RDONLY), other = openat(AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool held = fd >= 0 && other >= 0 && read(fd, text, 4) == 4 && memcmp(text, elf, 4) == 0;
    held &= pread(fd, again, 4, 0) == 4 && memcmp(again, elf, 4) == 0 && pread64(fd, wide, 3, 1) == 3 &&
            memcmp(wide, elf + 1, 3) == 0;
    held &= access("/proc/self/exe", R_OK) == 0 && readlink("/proc/self/exe", name, sizeof(name)) > 0 && name[0] == '/';
    held &= statx(AT_FDCWD, "/proc/self/exe", 0, STATX_TYPE, &st) == 0 && S_ISREG(st.stx_mode);
    close(fd);
    close(other);
    errno = 0;
    held &= open("/no/such/file", O_RDONLY) == -1 && errno == ENOENT;
    errno = 0;
    return held && access("/no/such/file", F_OK) == -1 && errno == ENOENT;
}

/* Those that also serve connection management. */
static bool calls_on_descriptors(void)
{
    char text[4];
    struct stat st;
    struct stat64 wide;
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    bool held = write(ends[1], "abcd", 4) == 4 && read(ends[0], text, 4) == 4 && memcmp(text, "abcd", 4) == 0;
    held &= fstat(ends[0], &st) == 0 && S_ISFIFO(st.st_mode) && fstat64(ends[1], &wide) == 0 && S_ISFIFO(wide.st_mode);
    held &= fstatat(AT_FDCWD, "/proc/self/exe", &st, 0) == 0 && S_ISREG(st.st_mode);
    held &= fstatat64(ends[0], "", &wide, AT_EMPTY_PATH) == 0 && S_ISFIFO(wide.st_mode);
    int other = dup(ends[1]);
    held &= other >= 0 && dup2(other, ends[0]) == ends[0] && dup2(other, other) == other;
    errno = 0;
    held &= dup3(other, other, 0) == -1 && errno == EINVAL && dup3(other, ends[0], O_CLOEXEC) == ends[0];
    errno = 0;
    held &= dup2(-1, -1) == -1 && errno == EBADF;
    held &= close(ends[0]) == 0 && close(ends[1]) == 0 && close(other) == 0;
    errno = 0;
    return held && close(other) == -1 && errno == EBADF;
}

/* fcntl, which a filter may not know. */
static bool calls_fcntl(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50);
    bool held = fd >= 50 && fcntl64(fd, F_GETFD) == FD_CLOEXEC && fcntl(fd, F_SETFD, 0) == 0 && fcntl(fd, F_GETFD) == 0;
    return held && close(fd) == 0 && fcntl(fd, F_GETFL) == -1;
}

/* --- before any constructor -------------------------------------------------------------------- */
static bool before_constructors;

/* Runs in a program of its own, because the functions that it calls are looked up from then on. */
static void begin(int argc, char **argv, char **env)
{
    (void)argv;
    (void)env;
    if (argc > 1)
        before_constructors = calls() && calls_on_descriptors() && calls_fcntl();
}
__attribute__((section(".preinit_array"), used)) static void (*const at_first)(int, char **, char **) = begin;

/* --- while the loader is at work --------------------------------------------------------------- */
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

/* The very first calls. The functions they look up were not looked up before. */
static void while_loading(void)
{
    char pipe[64];
    pthread_t loader;
    int end = -1;
    snprintf(pipe, sizeof(pipe), "%s/test_libc_next.%d", P_tmpdir, (int)getpid());
    need(mkfifo(pipe, 0600) == 0 && pthread_create(&loader, NULL, loads, pipe) == 0);
    for (double limit = vt_now() + 20; end < 0 && vt_now() < limit; usleep(1000)) /* until it reads */
        end = (int)syscall(SYS_openat, AT_FDCWD, pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    need(end >= 0);
    unlink(pipe);
    signal(SIGALRM, late);
    alarm(20);
    ok(calls() && calls_on_descriptors() && calls_fcntl(), "called while a library is loaded");
    alarm(0);
    close(end);
    pthread_join(loader, NULL);
}

/* --- what the kernel sees ---------------------------------------------------------------------- */
#define NONE 77
static int how_ended(pid_t child)
{
    int status = -1;
    need(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* There only read, write, the exit of a thread and the return from a signal handler are allowed. (A sanitizer may have
 * a thread more, so that the child doesn't end by itself.) */
static void strictly(void)
{
    int in[2], out[2];
    char text[4], result = 'n';
    need(pipe(in) == 0 && pipe(out) == 0 && write(in[1], "pipe", 4) == 4);
    pid_t child = fork();
    if (child == 0) {
        bool strict = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
        result = !strict ? '-' : read(in[0], text, 4) == 4 && memcmp(text, "pipe", 4) == 0 ? 'y' : 'n';
        (void)!write(out[1], &result, 1);
        for (;;)
            syscall(SYS_exit, 0);
    }
    close(out[1]);
    if (poll(&(struct pollfd){.fd = out[0], .events = POLLIN}, 1, 20000) == 1)
        (void)!read(out[0], &result, 1);
    kill(child, SIGKILL);
    how_ended(child);
    if (result == '-')
        printf("# no strict mode here\n");
    else
        ok(result == 'y', "read where only read is allowed");
    close(in[0]);
    close(in[1]);
    close(out[0]);
}

/* Calls that libc's functions of the other names don't make, and that a filter may not know. */
static const int others[] = {
    SYS_readv,     SYS_preadv,     SYS_preadv2, SYS_fcntl,
#ifdef SYS_access
    SYS_faccessat, SYS_readlinkat,
#endif
};
#define OTHERS (sizeof(others) / sizeof(others[0]))

static bool filter(void)
{
    struct sock_filter code[2 * OTHERS + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short n = 1;
    for (unsigned i = 0; i < OTHERS; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)others[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){n, code}) == 0;
}

static void filtered(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (!filter())
            _exit(NONE);
        DIR *dir = calls() && calls_on_descriptors() ? opendir("/") : NULL;
        _exit(dir && readdir(dir) ? 0 : 1);
    }
    int status = how_ended(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NONE)
        printf("# no filters here\n");
    else
        ok(status == 0, "no other system calls than libc's");
}

static void *reads(void *fd)
{
    char text;
    return read(*(int *)fd, &text, 1) == 1 ? NULL : fd;
}

static void cancelled(void)
{
    int ends[2];
    pthread_t reader;
    void *result = NULL;
    need(pipe(ends) == 0 && pthread_create(&reader, NULL, reads, &ends[0]) == 0);
    usleep(10000); /* so that it waits; if it doesn't yet, it ends as well */
    need(pthread_cancel(reader) == 0);
    usleep(10000);
    close(ends[1]); /* ends a read that can't be cancelled */
    ok(pthread_join(reader, &result) == 0 && result == PTHREAD_CANCELED, "a thread that reads can be cancelled");
    close(ends[0]);
}

int main(int argc, char **argv)
{
    VT_OWN("functions of the C library that the client library wraps");
    if (argc > 1)
        return before_constructors && calls() && calls_on_descriptors() && calls_fcntl() ? 0 : 1;
    while_loading();
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "early", (char *)NULL);
        _exit(1);
    }
    ok(how_ended(child) == 0, "called before any constructor, and then");
    strictly();
    filtered();
    cancelled();
    return vt_failed;
}
