// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/cmd/common/paths.h"
#include "src/cmd/net/check_system.h"

void check_installed(struct doctor_report *report)
{
    char path[PATH_MAX];

    if (paths_library(path))
        doctor_report_add(report, "library", FINDING_OK, "", "the client library is in %s", path);
    else
        doctor_report_add(report, "library", FINDING_FAIL, "make, or make install", "can't find the client library");
    if (paths_daemon(path))
        doctor_report_add(report, "daemon", FINDING_OK, "", "the daemon is %s", path);
    else
        doctor_report_add(report, "daemon", FINDING_FAIL, "make, or make install", "can't find the daemon");
}

/* --- memory of other processes ------------------------------------------------------------------------------------ */

/* Runs in a child: tries to read the memory of its sibling `pid` at p. The exit code is 0 or errno. */
static void read_sibling(pid_t pid, void *p)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {p, 1};

    _exit(process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1 ? 0 : errno);
}

/* Tries process_vm_readv between two processes that are siblings. As with a program and the daemon, neither process is
 * the parent of the other. Returns 0 or errno. */
static int try_process_vm(void)
{
    static char byte = 1;
    pid_t sleeper = fork(), reader;
    int status = 0;

    if (sleeper < 0)
        return errno;
    if (sleeper == 0) {
        pause();
        _exit(0);
    }
    reader = fork();
    if (reader == 0)
        read_sibling(sleeper, &byte);
    if (reader > 0)
        waitpid(reader, &status, 0);
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
    return reader < 0 ? EAGAIN : WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static bool has_seccomp_filter(const struct doctor_report *report)
{
    char name[PATH_MAX], line[256];
    bool found = false;

    snprintf(name, sizeof(name), "%s/proc/self/status", report->sysroot);
    FILE *file = fopen(name, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "Seccomp:", 8) == 0)
            found = atoi(line + 8) == 2;
    }
    if (file)
        fclose(file);
    return found;
}

static void proc_mem(struct doctor_report *report)
{
    char a = 1, b = 0;
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    bool good = fd >= 0 && pread(fd, &b, 1, (off_t)(uintptr_t)&a) == 1 && b == 1;

    if (fd >= 0)
        close(fd);
    if (good)
        doctor_report_add(report, "proc_mem", FINDING_OK, "", "programs can pass their /proc/self/mem to the daemon");
    else
        doctor_report_add(report, "proc_mem", FINDING_WARN, "mount /proc in the container",
                          "/proc/self/mem can't be used. If process_vm fails too, no program can register memory");
}

void check_memory(struct doctor_report *report)
{
    char scope[16] = "";
    int err = try_process_vm();

    doctor_report_read(report, "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
    if (err == 0 && atoi(scope) == 0)
        doctor_report_add(report, "process_vm", FINDING_OK, "",
                          "the daemon can reach the memory of programs by process_vm calls");
    else if (atoi(scope) > 0)
        doctor_report_add(
            report, "process_vm", FINDING_WARN, "sudo sysctl -w kernel.yama.ptrace_scope=0",
            "kernel.yama.ptrace_scope is %s, so the kernel refuses process_vm calls between processes. Pumice uses "
            "/proc/self/mem instead, which is a little slower",
            scope);
    else if (has_seccomp_filter(report))
        doctor_report_add(
            report, "process_vm", FINDING_WARN,
            "docker run --cap-add SYS_PTRACE ... (or --security-opt seccomp=unconfined)",
            "the container's seccomp filter refuses process_vm calls (%s). Pumice uses /proc/self/mem instead, which "
            "is a little slower",
            strerror(err));
    else
        doctor_report_add(
            report, "process_vm", FINDING_WARN, "run daemon and programs as the same user, in the same user namespace",
            "the kernel refuses process_vm calls (%s). Pumice uses /proc/self/mem instead, which is a little "
            "slower",
            strerror(err));
    proc_mem(report);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

/* Lower values than these make a finding a warning; below SHM_FREE_MIN it is a failure. All are bytes, except
 * FILES_MIN. */
#define MEMLOCK_MIN (64u << 20)
#define FILES_MIN 1024
#define SHM_MIN (64u << 20)
#define SHM_FREE_MIN (16u << 20)

static void shared_memory(struct doctor_report *report)
{
    static const char fix[] = "docker run --shm-size=1g ..., or: sudo mount -o remount,size=1g /dev/shm";
    char path[PATH_MAX];
    struct statvfs s;
    unsigned long long size, left;

    snprintf(path, sizeof(path), "%s/dev/shm", report->sysroot);
    if (statvfs(path, &s) != 0) {
        doctor_report_add(report, "shm", FINDING_WARN, fix,
                          "there is no /dev/shm; MPIs need it between processes of one host");
        return;
    }
    size = (unsigned long long)s.f_blocks * s.f_frsize;
    left = (unsigned long long)s.f_bavail * s.f_frsize;
    if (left < SHM_FREE_MIN)
        doctor_report_add(report, "shm", FINDING_FAIL, fix, "/dev/shm is almost full: %llu of %llu MiB are free",
                          left >> 20, size >> 20);
    else if (size <= SHM_MIN)
        doctor_report_add(report, "shm", FINDING_WARN, fix, "/dev/shm has only %llu MiB, which is too small for MPIs",
                          size >> 20);
    else
        doctor_report_add(report, "shm", FINDING_OK, "", "/dev/shm: %llu of %llu MiB are free", left >> 20, size >> 20);
}

static void sealed_memory(struct doctor_report *report)
{
    int fd = memfd_create("pumice-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        doctor_report_add(report, "memfd", FINDING_OK, "", "sealed shared memory (memfd) works");
    else
        doctor_report_add(report, "memfd", FINDING_FAIL, "docker run --security-opt seccomp=unconfined ...",
                          "can't create sealed shared memory (memfd_create: %s); maybe a seccomp filter refuses it",
                          strerror(errno));
    if (fd >= 0)
        close(fd);
}

void check_limits(struct doctor_report *report)
{
    struct rlimit r = {0, 0};

    getrlimit(RLIMIT_MEMLOCK, &r);
    if (r.rlim_cur != RLIM_INFINITY && r.rlim_cur < MEMLOCK_MIN)
        doctor_report_add(
            report, "memlock", FINDING_WARN,
            "ulimit -l unlimited (for all: \"* - memlock unlimited\" in /etc/security/limits.conf)",
            "only %llu KiB may be locked. Pumice locks no memory, but some verbs programs check this limit and fail",
            (unsigned long long)r.rlim_cur >> 10);
    else
        doctor_report_add(report, "memlock", FINDING_OK, "", "enough memory may be locked");
    getrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_max < FILES_MIN)
        doctor_report_add(
            report, "files", FINDING_WARN, "ulimit -n 65536",
            "a process may open only %llu files. Each program and each completion channel needs some of the "
            "daemon",
            (unsigned long long)r.rlim_max);
    else
        doctor_report_add(report, "files", FINDING_OK, "", "a process may open %llu files",
                          (unsigned long long)r.rlim_max);
    shared_memory(report);
    sealed_memory(report);
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

#define CLOCK_SLOW_NS 500

static double clock_cost(void)
{
    struct timespec a, b, t;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 2000; i++)
        clock_gettime(CLOCK_MONOTONIC, &t);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 2000;
}

void check_machine(struct doctor_report *report)
{
    char source[64] = "?";
    double cost = clock_cost();
    cpu_set_t set;

    doctor_report_read(report, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                       sizeof(source));
    if (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 || cost > CLOCK_SLOW_NS)
        doctor_report_add(report, "clock", FINDING_WARN,
                          "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
                          "reading the clock (%s) takes %.0f ns, which slows everything down", source, cost);
    else
        doctor_report_add(report, "clock", FINDING_OK, "", "reading the clock (%s) takes %.0f ns", source, cost);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2)
        doctor_report_add(
            report, "processors", FINDING_WARN, "docker run --cpus=2 ..., or taskset",
            "there is only one processor: the daemon and the programs wait for each other, and latency depends "
            "on the scheduler");
    else
        doctor_report_add(report, "processors", FINDING_OK, "", "%d processors may be used", CPU_COUNT(&set));
}
