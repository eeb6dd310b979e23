// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/lab/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/paths.h"
#include "src/cmd/common/targets.h"
#include "src/cmd/lab/address.h"
#include "src/cmd/lab/lab_dir.h"
#include "src/cmd/lab/namespace.h"

#define DEVICE_NAME "pumice%u" /* of each host, from 0 */
#define CPUS_TEXT_MAX 80
/* Numbers of descriptors in the daemon. */
#define READY_FD 3
#define DECISIONS_FD 4
#define READY_MS 30000 /* time for all daemons together to become ready */
#define STOP_MS 20000 /* time for all daemons together to end, on a very busy machine */

/* --- daemons ------------------------------------------------------------------------------------------------------ */

/* Writes the processors to which host i's devices are bound, as the option --cpus takes them. All daemons and their
 * clients work at the same time. If there are fewer processors than these, the scheduler often puts two daemons on one
 * processor, and only clients on another. Returns false if the scheduler shall choose. */
static bool choose_cpus(unsigned i, const struct lab_options *o, char text[CPUS_TEXT_MAX])
{
    unsigned threads = o->hosts * o->devices;
    size_t len = 0;
    cpu_set_t set;

    if (!o->spread_cpus || threads < 2 || sched_getaffinity(0, sizeof(set), &set) != 0 ||
        (unsigned)CPU_COUNT(&set) >= 2 * threads)
        return false;
    for (unsigned d = 0; d < o->devices; d++) {
        unsigned left = (i * o->devices + d) % (unsigned)CPU_COUNT(&set);
        int cpu = 0;

        for (; left || !CPU_ISSET(cpu, &set); cpu++)
            left -= CPU_ISSET(cpu, &set) ? 1 : 0;
        len += (size_t)snprintf(text + len, CPUS_TEXT_MAX - len, d ? ",%d" : "%d", cpu);
    }
    return true;
}

/* The command line of a daemon, and the texts in it. */
struct arguments {
    const char *argv[14 + 2 * DEVICES_MAX + LAB_PASS_MAX];
    char socket[SOCKET_PATH_MAX], ready_fd[12], decisions_fd[12], net[PATH_MAX], cpus[CPUS_TEXT_MAX],
        device[DEVICES_MAX][ADDRESS_LIST_MAX + 16];
};

static void set_arguments(struct arguments *a, const struct lab *lab, unsigned i, const char *path,
                          const struct lab_options *o)
{
    unsigned n = 0;

    targets_lab_socket(lab->dir, i, a->socket);
    snprintf(a->ready_fd, sizeof(a->ready_fd), "%d", READY_FD);
    a->argv[n++] = path;
    a->argv[n++] = "--socket";
    a->argv[n++] = a->socket;
    a->argv[n++] = "--ready-fd";
    a->argv[n++] = a->ready_fd;
    if (o->decisions_fd[i] >= 0) {
        snprintf(a->decisions_fd, sizeof(a->decisions_fd), "%d", DECISIONS_FD);
        a->argv[n++] = "--decisions-fd";
        a->argv[n++] = a->decisions_fd;
    }
    for (unsigned d = 0; d < lab->devices; d++) {
        snprintf(a->device[d], sizeof(a->device[d]), DEVICE_NAME "=%s", d, lab->host[i].addresses[d]);
        a->argv[n++] = "--device";
        a->argv[n++] = a->device[d];
    }
    for (unsigned j = 0; j < o->num_pass; j++)
        a->argv[n++] = o->pass[j];
    if (o->net) {
        lab_dir_net_path(lab->dir, a->net);
        a->argv[n++] = "--net";
        a->argv[n++] = a->net;
    }
    if (choose_cpus(i, o, a->cpus)) {
        a->argv[n++] = "--cpus";
        a->argv[n++] = a->cpus;
    }
    a->argv[n] = NULL;
}

/* Becomes the daemon. Runs in the child and never returns. */
static void daemon_exec(const struct lab *lab, unsigned i, const char *path, const struct lab_options *o, pid_t parent,
                        int ready)
{
    static struct arguments arguments;
    int null = open("/dev/null", O_RDONLY), out;
    char log[PATH_MAX];
    sigset_t none;

    /* The daemon gets its own process group, because signals of the terminal are for the command, which ends first. But
     * the daemon stays in the command's session. Linux shares a processor between sessions first (autogroup), and a
     * yield gives no time to another session. In another session, the daemon would run after each time slice of a
     * client, mostly without work. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_OWN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set_arguments(&arguments, lab, i, path, o);
    lab_dir_log_path(lab->dir, i, log);
    out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    if (ready == READY_FD)
        fcntl(ready, F_SETFD, 0);
    else
        dup2(ready, READY_FD);
    if (o->decisions_fd[i] >= 0)
        dup2(o->decisions_fd[i], DECISIONS_FD);
    execv(path, (char **)(uintptr_t)arguments.argv);
    fprintf(stderr, "can't execute %s: %s\n", path, strerror(errno));
    _exit(EXIT_NOEXEC);
}

static int daemon_start(struct lab *lab, unsigned i, const char *path, const struct lab_options *o)
{
    struct lab_host *h = &lab->host[i];
    pid_t self = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        say("can't create a pipe: %s", strerror(errno));
        return -1;
    }
    h->pid = fork();
    if (h->pid == 0)
        daemon_exec(lab, i, path, o, self, ends[1]);
    close(ends[1]);
    h->ready = ends[0];
    if (h->pid > 0)
        return 0;
    say("can't fork: %s", strerror(errno));
    h->pid = 0;
    return -1;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits until the daemon writes a byte to the pipe, because it is ready. If the pipe ends without a byte, the daemon
 * has ended. Returns 0, -ETIMEDOUT or -ECHILD. */
static int daemon_wait(struct lab *lab, unsigned i, uint64_t until)
{
    struct lab_host *h = &lab->host[i];
    struct pollfd p = {.fd = h->ready, .events = POLLIN};
    uint64_t now = now_ms();
    char byte;
    int n = poll(&p, 1, now < until ? (int)(until - now) : 0);
    bool ready = n == 1 && read(h->ready, &byte, 1) == 1;

    close(h->ready);
    h->ready = -1;
    if (ready)
        return 0;
    return n == 0 ? -ETIMEDOUT : -ECHILD;
}

/* Waits for the end of a daemon that is about to end. At the time `until`, kills the daemon and returns false. */
static bool daemon_reap(struct lab_host *h, uint64_t until, int *status)
{
    const struct timespec pause = {.tv_nsec = 5000000};

    while (waitpid(h->pid, status, WNOHANG) == 0) {
        if (now_ms() >= until) {
            kill(h->pid, SIGKILL);
            waitpid(h->pid, status, 0);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

static void stop_daemons(struct lab *lab)
{
    uint64_t until = now_ms() + STOP_MS;
    int status;

    lab->stopping = true;
    for (unsigned i = 0; i < lab->hosts; i++)
        if (lab->host[i].pid)
            kill(lab->host[i].pid, SIGTERM);
    for (unsigned i = 0; i < lab->hosts; i++) {
        struct lab_host *h = &lab->host[i];

        if (h->ready >= 0)
            close(h->ready);
        h->ready = -1;
        if (!h->pid)
            continue;
        if (daemon_reap(h, until, &status)) {
            lab_ended(lab, h->pid, status);
        } else {
            say("host %u: the daemon did not end within %d s after SIGTERM, so it was killed", i, STOP_MS / 1000);
            lab->crashed = true;
            h->pid = 0;
        }
    }
}

/* --- the lab ------------------------------------------------------------------------------------------------------ */

/* Has another program one of the addresses of host i? */
static bool in_use(const struct lab *lab, unsigned i)
{
    bool found = false;

    for (unsigned d = 0; d < lab->devices && !found; d++)
        found = address_check(lab->host[i].addresses[d]) == -EADDRINUSE;
    return found;
}

/* Writes the plan of the network, and the addresses of the hosts behind it. The queues of an earlier try are removed.
 * Returns 0, or -1 after printing an error. */
static int write_net(const struct lab *lab, const char *plan)
{
    char path[PATH_MAX];

    lab_dir_net_path(lab->dir, path);
    FILE *f = fopen(path, "we");
    if (!f) {
        say("%s: %s", path, strerror(errno));
        return -1;
    }
    fprintf(f, "%s\n", plan);
    for (unsigned i = 0; i < lab->hosts * lab->devices; i++) {
        const char *list = lab->host[i / lab->devices].addresses[i % lab->devices];

        fprintf(f, "host %u: ", i / lab->devices);
        for (const char *c = list; *c; c++)
            fputs(*c == '+' ? ", " : (char[]){*c, 0}, f);
        fputc('\n', f);
    }
    if (fclose(f) == 0)
        return 0;
    say("%s: %s", path, strerror(errno));
    return -1;
}

/* Starts all daemons at the addresses in lab->host, and waits until they are ready. Returns 0, -EADDRINUSE if another
 * program has just taken a port, or -1 after printing an error. */
static int start_daemons(struct lab *lab, const char *path, const struct lab_options *o)
{
    uint64_t until = now_ms() + READY_MS;
    unsigned i;
    int err = 0, status;

    if (o->net && write_net(lab, o->net) != 0)
        return -1;
    lab->starting = true;
    lab->stopping = false;
    for (i = 0; i < lab->hosts && !err; i++)
        err = daemon_start(lab, i, path, o);
    if (err) {
        stop_daemons(lab);
        return -1;
    }
    for (i = 0; i < lab->hosts && !err; i++)
        err = daemon_wait(lab, i, until);
    lab->starting = err != 0;
    if (!err)
        return 0;
    i--; /* the host that failed */
    if (err == -ECHILD) {
        daemon_reap(&lab->host[i], until, &status);
        lab->host[i].pid = 0;
    }
    stop_daemons(lab);
    if (err == -ECHILD && in_use(lab, i))
        return -EADDRINUSE;
    if (err == -ECHILD)
        say("host %u (%s): the daemon did not start:", i, lab->host[i].addresses[0]);
    else
        say("host %u (%s): the daemon was not ready after %d s:", i, lab->host[i].addresses[0], READY_MS / 1000);
    lab_dir_show_log(lab->dir, i);
    return -1;
}

/* Checks one item of --addresses. Returns 0, or -1 after printing an error. */
static int check_given(const char *item)
{
    int err = address_check(item);

    if (err == -EINVAL)
        say("--addresses: '%s' is not an IPv4 or IPv6 address", item);
    else if (err == -EADDRINUSE)
        say("UDP port 4791 is in use on %s (by another daemon or rdma_rxe?)", item);
    else if (err == -EADDRNOTAVAIL)
        say("%s is not an address of this machine (see ip address)", item);
    else if (err)
        say("%s: %s", item, strerror(-err));
    return err ? -1 : 0;
}

static int start_given(struct lab *lab, const char *path, const struct lab_options *o)
{
    static char list[HOSTS_MAX * DEVICES_MAX][ADDRESS_LIST_MAX];
    unsigned total = lab->hosts * lab->devices;
    int n = address_split(o->addresses, list, HOSTS_MAX * DEVICES_MAX);

    if (n != (int)total) {
        say("--addresses: invalid value \"%s\": expected one address for each of the %u %s, separated by commas "
            "(several of one %s: by +)",
            o->addresses, total, lab->devices > 1 ? "devices of all hosts" : "hosts",
            lab->devices > 1 ? "device" : "host");
        return -1;
    }
    for (unsigned i = 0; i < total; i++) {
        memcpy(lab->host[i / lab->devices].addresses[i % lab->devices], list[i], sizeof(list[i]));
        if (check_given(list[i]) != 0)
            return -1;
    }
    int err = start_daemons(lab, path, o);
    if (err == -EADDRINUSE)
        say("another program has just taken UDP port 4791 on one of %s", o->addresses);
    return err;
}

/* Sets the addresses of a device: the first, and the second if it can be used. Returns 0, or -errno because of the
 * first. */
static int set_addresses(char out[ADDRESS_LIST_MAX], const char *first, const char *second)
{
    snprintf(out, ADDRESS_LIST_MAX, address_check(second) ? "%s" : "%s+%s", first, second);
    return address_check(first);
}

static int set_block(struct lab *lab, unsigned block)
{
    char first[INET6_ADDRSTRLEN], second[INET6_ADDRSTRLEN];
    int err = 0;

    for (unsigned i = 0; i < lab->hosts * lab->devices && !err; i++) {
        unsigned host = i / lab->devices, device = i % lab->devices;

        address_in_block(block, host, device, 0, first);
        address_in_block(block, host, device, 1, second);
        err = set_addresses(lab->host[host].addresses[device], first, second);
    }
    return err;
}

static int set_v6(struct lab *lab)
{
    char first[INET6_ADDRSTRLEN], second[INET6_ADDRSTRLEN];
    int err = 0;

    for (unsigned i = 0; i < lab->hosts * lab->devices && !err; i++) {
        unsigned host = i / lab->devices, device = i % lab->devices;

        address_v6(host, device, 0, first);
        address_v6(host, device, 1, second);
        err = set_addresses(lab->host[host].addresses[device], first, second);
    }
    return err;
}

/* Without rights, a program can bind to ::1 only. If the machine has the addresses fd00::1 and so on, because an
 * administrator added them, the lab uses these. Otherwise pumice run continues in a network namespace of its own. */
static int start_v6(struct lab *lab, const char *path, const struct lab_options *o)
{
    char why[NAMESPACE_WHY_MAX];

    if (set_v6(lab) != 0) {
        if (namespace_enter_v6(lab->hosts, lab->devices, why) != 0) {
            say("--ipv6: %s. This machine has no free addresses fd00::1 to fd00::%x either. Let an administrator allow "
                "user namespaces, or add the addresses (ip -6 address add fd00::1/128 dev lo, and so on), or name IPv6 "
                "addresses of this machine with --addresses",
                why, lab->hosts);
            return -1;
        }
        int err = set_v6(lab);
        if (err) {
            say("--ipv6: can't use fd00::1 in the new network namespace: %s", strerror(-err));
            return -1;
        }
    }
    int err = start_daemons(lab, path, o);
    if (err == -EADDRINUSE)
        say("another program has just taken UDP port 4791 on one of fd00::1 to fd00::%x; try again", lab->hosts);
    return err;
}

static int first_length(const struct lab_host *h)
{
    return (int)strcspn(h->addresses[0], "+");
}

static int start_anywhere(struct lab *lab, const char *path, const struct lab_options *o)
{
    const struct lab_host *first = &lab->host[0], *last = &lab->host[lab->hosts - 1];
    int err = 0;

    for (unsigned block = 0; block < ADDRESS_BLOCKS; block++) {
        err = set_block(lab, block);
        if (!err)
            err = start_daemons(lab, path, o);
        if (err == 0 && block > 0)
            say("UDP port 4791 is in use on 127.0.0.x; the hosts are %.*s%s%.*s", first_length(first),
                first->addresses[0], lab->hosts > 1 ? " to " : "", lab->hosts > 1 ? first_length(last) : 0,
                last->addresses[0]);
        if (err == 0 || err == -1)
            return err;
        if (err != -EADDRINUSE)
            break;
    }
    if (err == -EADDRINUSE)
        say("UDP port 4791 is in use on every address from 127.0.0.1 to 127.0.255.1; a kernel RoCE device uses them "
            "all "
            "(to remove it: sudo modprobe -r rdma_rxe)");
    else
        say("can't use %.*s: %s (is the loopback interface up?)", first_length(first), first->addresses[0],
            strerror(-err));
    return -1;
}

static int start(struct lab *lab, const char *path, const struct lab_options *o)
{
    if (o->addresses)
        return start_given(lab, path, o);
    return o->ipv6 ? start_v6(lab, path, o) : start_anywhere(lab, path, o);
}

int lab_start(struct lab *lab, const struct lab_options *o)
{
    char path[PATH_MAX];

    *lab = (struct lab){.hosts = o->hosts, .devices = o->devices, .keep_logs = o->keep_logs, .guard.pipe = -1};
    for (unsigned i = 0; i < HOSTS_MAX; i++)
        lab->host[i].ready = -1;
    if (!paths_daemon(path) || lab_dir_make(lab->dir) != 0)
        return -1;
    if (!lab->keep_logs)
        lab_guard_start(&lab->guard, lab->dir);
    int lock = address_lock();
    int err = start(lab, path, o);
    close(lock);
    if (err)
        lab_stop(lab);
    return err;
}

bool lab_ended(struct lab *lab, pid_t pid, int status)
{
    for (unsigned i = 0; i < lab->hosts; i++) {
        if (lab->host[i].pid != pid)
            continue;
        lab->host[i].pid = 0;
        if (lab->starting)
            return true;
        if (lab->stopping && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
            return true; /* the daemon got the signal before it had a handler */
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            if (!lab->stopping)
                say("host %u: the daemon has ended", i);
            return true;
        }
        if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM)) {
            say("host %u: the daemon was killed", i);
            return true;
        }
        if (WIFSIGNALED(status))
            say("host %u: the daemon crashed: %s", i, strsignal(WTERMSIG(status)));
        else
            say("host %u: the daemon failed with exit code %d", i, WEXITSTATUS(status));
        lab_dir_show_log(lab->dir, i);
        lab->crashed = true;
        return true;
    }
    return false;
}

void lab_stop(struct lab *lab)
{
    stop_daemons(lab);
    if (lab->keep_logs && lab->dir[0]) {
        lab_dir_remove_sockets(lab->dir, lab->hosts);
        say("the logs are in %s", lab->dir);
    } else if (lab->dir[0]) {
        lab_dir_remove(lab->dir);
    }
    lab_guard_stop(&lab->guard);
    lab->dir[0] = 0;
}
