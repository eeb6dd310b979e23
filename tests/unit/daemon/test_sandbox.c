// SPDX-License-Identifier: BSD-2-Clause
/* The sandbox, tried out: a child process enters it as a thread of the daemon does, and tries what is forbidden and what
 * must go on. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/sanitizer.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/threads/file_thread.h"
#include "tests/unit/skip.h"

static char dir[64], socket_path[100], tree[110], map[100], config_path[100], other[100];

static void make_files(void)
{
    strcpy(dir, "/tmp/pumice-sandbox-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(tree, sizeof(tree), "%s/run", dir);
    cr_assert(mkdir(tree, 0700) == 0);
    snprintf(socket_path, sizeof(socket_path), "%s/run/s", dir);
    snprintf(tree, sizeof(tree), "%s/run/s.sysfs", dir);
    cr_assert(mkdir(tree, 0700) == 0);
    snprintf(map, sizeof(map), "%s/map", dir);
    snprintf(config_path, sizeof(config_path), "%s/etc", dir);
    cr_assert(mkdir(config_path, 0700) == 0);
    snprintf(config_path, sizeof(config_path), "%s/etc/conf", dir);
    snprintf(other, sizeof(other), "%s/other", dir);
    const char *const files[] = {socket_path, config_path, other};
    for (unsigned i = 0; i < 3; i++) {
        int fd = open(files[i], O_WRONLY | O_CREAT, 0600);

        cr_assert(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    }
}

static void remove_files(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    cr_assert(system(command) == 0);
}

static void begin(bool landlock_devices)
{
    const struct sandbox_config c = {
        .paths = {.socket = socket_path, .tree = tree, .append = map, .config = config_path},
        .landlock_devices = landlock_devices};

    sandbox_begin(&c);
}

/* --- the child --------------------------------------------------------------------------------- */

static unsigned wrong;

/* One line for what went wrong. The test's process sees the number of lines as exit code. */
static void expect(bool held, const char *what)
{
    if (!held)
        fprintf(stderr, "not as expected: %s (errno %s)\n", what, strerrorname_np(errno));
    wrong += !held;
}
#define REFUSED(call, what) expect((call) == -1 && errno == EPERM, what)

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void *nothing(void *arg)
{
    return arg;
}

/* The arguments are such that the call does no harm if it is not refused: then it fails with another error. */
static void try_processes(pid_t parent)
{
    char *argv[] = {"none", NULL};

    REFUSED(execve("/none", argv, argv), "execve");
    REFUSED(syscall(SYS_execveat, AT_FDCWD, "/none", argv, argv, 0), "execveat");
    REFUSED(syscall(SYS_clone, CLONE_SIGHAND, NULL, NULL, NULL, NULL), "a new process");
    REFUSED(ptrace(PTRACE_DETACH, parent, NULL, NULL), "ptrace");
    REFUSED(kill(parent, 0), "a signal to another process");
    REFUSED(syscall(SYS_tgkill, parent, parent, 0), "a signal to another thread");
    REFUSED(syscall(SYS_pidfd_getfd, -1, 0, 0), "pidfd_getfd");
    REFUSED(prctl(PR_SET_PTRACER, -1, 0, 0, 0), "prctl(PR_SET_PTRACER)");
}

static void try_kernel(void)
{
    REFUSED(unshare(-1), "unshare");
    REFUSED(mount("none", "/none/none", "tmpfs", 0, NULL), "mount");
    REFUSED(chroot("/none"), "chroot");
    REFUSED(setuid((uid_t)-1), "setuid");
    REFUSED(syscall(SYS_capset, NULL, NULL), "capset");
    REFUSED(syscall(SYS_bpf, 0, NULL, 0), "bpf");
    REFUSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), "perf_event_open");
    REFUSED(syscall(SYS_keyctl, 0, 0, 0, 0, 0), "keyctl");
    REFUSED(syscall(SYS_io_uring_setup, 1, NULL), "io_uring");
    REFUSED(syscall(SYS_userfaultfd, 0), "userfaultfd");
    REFUSED(syscall(SYS_init_module, NULL, 0, ""), "init_module");
    REFUSED(syscall(SYS_reboot, 0, 0, 0, NULL), "reboot");
    expect(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EPERM,
           "executable memory");
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(p != MAP_FAILED, "memory");
    REFUSED(mprotect(p, 4096, PROT_READ | PROT_EXEC), "memory that becomes executable");
}

static void try_sockets(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/private"};
    int fd;

    REFUSED(socket(AF_PACKET, SOCK_RAW, 0), "a packet socket");
    REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "a raw socket");
    REFUSED(socket(AF_INET, SOCK_STREAM, 0), "a TCP socket");
    REFUSED(socket(AF_UNIX, SOCK_STREAM, 0), "a connection to a service of this machine");
    REFUSED(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT), "netlink, but not about routes");
    REFUSED(socket(AF_VSOCK, SOCK_STREAM, 0), "AF_VSOCK");
    expect((fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0, "a UDP socket");
    REFUSED(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "connect");
    expect(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE) >= 0, "netlink about routes");
    expect(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0, "a socket to the service manager");
}

/* The daemon goes on with these. `value` is a variable of the parent, which has the same address there. */
static void try_needs(pid_t parent, uint64_t *value, bool process_vm)
{
    uint64_t seen = 0;
    struct iovec local = {&seen, sizeof(seen)}, remote = {value, sizeof(*value)};
    pthread_t thread;

    expect(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING) >= 0, "a segment");
    expect(syscall(SYS_pidfd_open, parent, 0) >= 0, "a descriptor of a client's process");
    expect(opens("/proc/self/status", O_RDONLY) && opens("/proc/net/packet", O_RDONLY), "files of /proc");
    expect(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    ssize_t n = process_vm_readv(parent, &local, 1, &remote, 1, 0);
    expect(process_vm ? n == sizeof(seen) && seen == 4711 : n < 0 && errno == EPERM, "process_vm_readv");
}

static void try_all_threads(pid_t parent, uint64_t *value, bool process_vm)
{
    try_processes(parent);
    try_kernel();
    try_sockets();
    try_needs(parent, value, process_vm);
}

static void as_device(pid_t parent, uint64_t *value)
{
    begin(false);
    sandbox_enter_device();
    try_all_threads(parent, value, true);
    REFUSED(open("/etc/shadow", O_WRONLY), "a file for writing");
    REFUSED(open("/etc/shadow", O_RDWR), "a file for reading and writing");
    REFUSED(open(other, O_RDONLY | O_TRUNC), "a file that becomes empty");
    REFUSED(open(map, O_RDONLY | O_CREAT, 0600), "a file that may be new");
    REFUSED(openat(AT_FDCWD, map, O_WRONLY | O_APPEND), "openat");
    REFUSED(unlink(other), "a file that is removed");
    REFUSED(rename(other, map), "a file that gets another name");
    REFUSED(mkdir(other, 0700), "a directory");
    REFUSED(accept4(0, NULL, NULL, 0), "accepting a connection");
    expect(opens(other, O_RDONLY), "a file for reading");
}

/* A thread of a device, where memory is reached by /proc/PID/mem only. */
static void as_landlocked_device(pid_t parent, uint64_t *value)
{
    begin(true);
    sandbox_enter_main();
    sandbox_enter_device();
    try_all_threads(parent, value, false);
    expect(!opens(other, O_RDONLY) && errno == EACCES, "a file for reading");
    expect(!opens("/etc/passwd", O_RDONLY) && errno == EACCES, "a file that all may read");
}

static void append(void *arg)
{
    *(bool *)arg = opens(map, O_WRONLY | O_APPEND | O_CREAT) && !opens(other, O_WRONLY) && errno == EACCES;
}

static void as_main(pid_t parent, uint64_t *value)
{
    char path[128], new_path[140];
    bool appended = false;

    begin(false);
    sandbox_enter_main();
    try_all_threads(parent, value, false);
    expect(!opens("/etc/shadow", O_WRONLY) && errno == EACCES, "/etc/shadow for writing");
    expect(!opens("/etc/passwd", O_RDONLY) && errno == EACCES, "a file that all may read");
    expect(!opens(other, O_WRONLY) && errno == EACCES, "another file");
    expect(unlink(other) == -1 && errno == EACCES, "another file is removed");
    expect(!opens(config_path, O_WRONLY) && errno == EACCES && opens(config_path, O_RDONLY),
           "configuration: read only");
    expect(opens(map, O_WRONLY | O_APPEND | O_CREAT), "the file to which it appends");
    snprintf(path, sizeof(path), "%s/gids", tree);
    expect(mkdir(path, 0700) == 0, "a directory of the tree");
    snprintf(new_path, sizeof(new_path), "%s.new", path);
    snprintf(path, sizeof(path), "%s/gids/0", tree);
    expect(opens(new_path, O_WRONLY | O_CREAT | O_TRUNC) && rename(new_path, path) == 0, "a file of the tree");
    expect(opens(path, O_WRONLY | O_TRUNC) && unlink(path) == 0, "it is written again and removed");
    expect(unlink(socket_path) == 0, "the socket is removed");
    file_thread_do(append, &appended);
    expect(appended, "the file thread appends, and writes nothing else");
    file_thread_stop();
}

/* --- the tests --------------------------------------------------------------------------------- */

/* Runs fn in a child that the kernel lets read this process, and checks that nothing was wrong there. */
static void in_child(void (*fn)(pid_t parent, uint64_t *value), bool landlock)
{
    static uint64_t value = 1;
    pid_t parent = getpid(), child;
    int status;

    if (SANITIZED)
        SKIP_TEST("sandbox", "in a build with a sanitizer, its run-time library may do more");
    if (landlock && landlock_abi() < LANDLOCK_ABI_NEEDED)
        SKIP_TEST("sandbox", "this kernel has no Landlock, or an old one");
    make_files();
    value = 4711;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        value = 0;
        fn(parent, &value);
        _exit((int)wrong);
    }
    cr_assert(waitpid(child, &status, 0) == child);
    remove_files();
    cr_assert(WIFEXITED(status), "the child died of signal %d", WTERMSIG(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "%d things were not as expected", WEXITSTATUS(status));
}

Test(sandbox, threads_of_devices)
{
    in_child(as_device, false);
}

Test(sandbox, threads_of_devices_without_process_vm)
{
    in_child(as_landlocked_device, true);
}

Test(sandbox, the_main_thread_and_the_file_thread)
{
    in_child(as_main, true);
}

static void without(pid_t parent, uint64_t *value)
{
    (void)value;
    sandbox_enter_device();
    sandbox_enter_main();
    expect(strcmp(sandbox_state().sandbox, "off") == 0, "the state");
    expect(opens("/etc/passwd", O_RDONLY) && opens(other, O_WRONLY) && kill(parent, 0) == 0, "all goes on");
}

Test(sandbox, nothing_is_forbidden_without_it)
{
    in_child(without, false);
}
