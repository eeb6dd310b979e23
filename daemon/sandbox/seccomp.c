// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/sanitizer.h"

/* A type of socket has flags in the upper bits. */
#define SOCKET_TYPE 0xfu
#define PR_SET_VMA_ 0x53564d41 /* the C library names its memory */

/* Calls with any arguments. A name that the processor or libseccomp does not have is left out. */
/* clang-format off */
static const char *const allowed[] = {
    /* data path */
    "sendmmsg", "sendmsg", "sendto", "recvmmsg", "recvmsg", "recvfrom", "process_vm_readv", "process_vm_writev",
    "preadv", "pwritev", "pread64", "pwrite64", "read", "write", "readv", "writev", "tee", "epoll_wait", "epoll_pwait",
    "poll", "ppoll", "sched_yield", "futex", "clock_gettime", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "clock_getres", "timerfd_settime", "timerfd_gettime", "membarrier", "getcpu",
    /* descriptors */
    "close", "close_range", "dup", "dup2", "dup3", "fcntl", "pipe2", "eventfd2", "memfd_create", "timerfd_create",
    "epoll_create1", "epoll_ctl", "pidfd_open", "fstat", "fstatfs", "lseek", "ftruncate", "fallocate", "fadvise64",
    "accept4", "bind", "listen", "getsockname", "getpeername", "getsockopt", "setsockopt", "shutdown",
    /* files */
    "open", "openat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink",
    "readlinkat", "getcwd", "getdents64", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat",
    "renameat2", "fchmod", "umask",
    /* memory */
    "brk", "munmap", "mremap", "madvise", "msync",
    /* processes and threads */
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "getrusage", "uname", "sysinfo",
    "sched_getaffinity", "sched_setaffinity", "sched_getattr", "sched_setattr", "sched_getparam", "sched_getscheduler",
    "set_robust_list", "rseq", "set_tid_address", "sigaltstack", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
    "rt_sigtimedwait", "restart_syscall", "exit", "exit_group",
    /* further filters, and the rules of landlock.c */
    "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
};

/* The C library has another way if the kernel does not have these calls. For the first one a filter can't see the flags,
 * because they are in memory. */
static const char *const unknown[] = {"clone3", "openat2", "epoll_pwait2", "futex_wait", "futex_wake", "futex_waitv"};

/* The calls that a sanitizer needs: to find leaks it traces a copy of the process, and for reports it reads programs. */
static const char *const for_sanitizers[] = {
    "clone", "fork", "vfork", "ptrace", "wait4", "waitid", "kill", "tgkill", "mmap", "mprotect", "prctl", "personality",
    "prlimit64", "getrlimit", "setrlimit", "execve", "arch_prctl", "process_madvise", "getdents",
};

static const char *const changes_files[] = {
    "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "fchmod", "accept4", "listen",
};
/* clang-format on */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int add_names(scmp_filter_ctx f, uint32_t action, const char *const *name, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        int nr = seccomp_syscall_resolve_name(name[i]);

        if (nr != __NR_SCMP_ERROR)
            rc = seccomp_rule_add(f, action, nr, 0);
    }
    return rc;
}

/* Adds a rule whose arguments match all of n comparisons. */
static int add(scmp_filter_ctx f, uint32_t action, const char *name, unsigned n, const struct scmp_arg_cmp *cmp)
{
    int nr = seccomp_syscall_resolve_name(name);

    return nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(f, action, nr, n, cmp);
}
#define ADD(f, action, name, ...)                                                                                      \
    add((f), (action), (name), COUNT(((struct scmp_arg_cmp[]){__VA_ARGS__})), (struct scmp_arg_cmp[]){__VA_ARGS__})

static int allow_sockets(scmp_filter_ctx f)
{
    static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6};
    static const unsigned netlinks[] = {NETLINK_ROUTE, NETLINK_SOCK_DIAG};
    int rc = 0;

    for (unsigned i = 0; i < COUNT(netlinks) && rc == 0; i++)
        rc = ADD(f, SCMP_ACT_ALLOW, "socket", SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, netlinks[i]));
    for (unsigned i = 0; i < COUNT(families) && rc == 0; i++)
        rc = ADD(f, SCMP_ACT_ALLOW, "socket", SCMP_A0(SCMP_CMP_EQ, families[i]),
                 SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_DGRAM));
    return rc;
}

static int allow_by_number(scmp_filter_ctx f)
{
    static const unsigned ioctls[] = {FIONREAD,     FIGETBSZ,     TCGETS,     SIOCGIFNAME,
                                      SIOCGIFINDEX, SIOCGIFFLAGS, SIOCGIFMTU, SIOCGIFHWADDR};
    static const unsigned options[] = {PR_SET_NAME, PR_GET_NAME,         PR_SET_TIMERSLACK,  PR_GET_SECCOMP,
                                       PR_SET_VMA_, PR_GET_NO_NEW_PRIVS, PR_SET_NO_NEW_PRIVS}; /* libseccomp sets it */
    int rc = 0;

    for (unsigned i = 0; i < COUNT(ioctls) && rc == 0; i++)
        rc = ADD(f, SCMP_ACT_ALLOW, "ioctl", SCMP_A1(SCMP_CMP_EQ, ioctls[i]));
    for (unsigned i = 0; i < COUNT(options) && rc == 0; i++)
        rc = ADD(f, SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, options[i]));
    return rc;
}

/* Memory that is not executable; threads, but no processes; limits may be read; abort() sends a signal to itself. */
static int allow_some(scmp_filter_ctx f)
{
    const uint32_t yes = SCMP_ACT_ALLOW;
    int rc = ADD(f, yes, "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

    if (rc == 0)
        rc = ADD(f, yes, "mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (rc == 0)
        rc = ADD(f, yes, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    if (rc == 0) /* for the thread that closes sockets (threads/socket_reaper.h) */
        rc = ADD(f, yes, "unshare", SCMP_A0(SCMP_CMP_EQ, CLONE_FILES));
    if (rc == 0)
        rc = ADD(f, yes, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    if (rc == 0)
        rc = ADD(f, yes, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
    if (rc == 0)
        rc = ADD(f, yes, "tgkill", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
    if (rc == 0)
        rc = allow_sockets(f);
    return rc ? rc : allow_by_number(f);
}

/* Loads the filter into the kernel for this thread, and releases it. */
static int load(scmp_filter_ctx f, int rc)
{
    /* By itself, the kernel before 5.16 slows down processes with filters against Spectre. The daemon runs no code of
     * strangers. */
    seccomp_attr_set(f, SCMP_FLTATR_CTL_SSB, 1);
    seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list; libseccomp 2.5 */
    if (rc == 0)
        rc = seccomp_load(f);
    seccomp_release(f);
    return rc;
}

int seccomp_daemon(void)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));

    if (!f)
        return -ENOMEM;
    int rc = SANITIZED ? add_names(f, SCMP_ACT_ALLOW, for_sanitizers, COUNT(for_sanitizers)) : 0;
    if (rc == 0)
        rc = add_names(f, SCMP_ACT_ALLOW, allowed, COUNT(allowed));
    if (rc == 0)
        rc = add_names(f, SCMP_ACT_ERRNO(ENOSYS), unknown, COUNT(unknown));
    if (rc == 0)
        rc = allow_some(f);
    seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
    return load(f, rc);
}

/* No open for writing, and none that creates or shortens a file. flags: the number of the argument. */
static int refuse_writing(scmp_filter_ctx f, const char *name, unsigned flags)
{
    const uint32_t no = SCMP_ACT_ERRNO(EPERM);
    int rc = ADD(f, no, name, SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_WRONLY));

    if (rc == 0)
        rc = ADD(f, no, name, SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDWR));
    if (rc == 0)
        rc = ADD(f, no, name, SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, O_CREAT, O_CREAT));
    return rc ? rc : ADD(f, no, name, SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, O_TRUNC, O_TRUNC));
}

int seccomp_device(void)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

    if (!f)
        return -ENOMEM;
    int rc = add_names(f, SCMP_ACT_ERRNO(EPERM), changes_files, COUNT(changes_files));
    if (rc == 0)
        rc = refuse_writing(f, "open", 1);
    return load(f, rc ? rc : refuse_writing(f, "openat", 2));
}
