// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the programs of this folder: hostile members of the group that may use a daemon. They speak to the control
 * socket themselves. Each program has a daemon of its own, with the options that it needs. If the program runs as root,
 * the hostile member is another user (HOSTILE_UID), and the group of that user may use the daemon. Otherwise both are
 * the same user.
 *
 * A bystander asks the daemon for its devices and its status while it is under attack, and measures the time. */
#ifndef PUMICE_TESTS_VERBS_HOSTILE_H
#define PUMICE_TESTS_VERBS_HOSTILE_H

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "tests/verbs/check.h"
#include "tests/verbs/device.h"
#include "tests/verbs/hostile/control_send.h"

#define HOSTILE_UID 65534u
#define HOSTILE_BYSTANDER_UID 65531u
#define HOSTILE_GROUP "nogroup"
/* A daemon that hangs does not answer for as long as the attack goes on. So the limit may be far above the time that a
 * busy machine takes. */
#define HOSTILE_ANSWER_S 5

struct hostile {
    pid_t daemon;
    char dir[64], socket[96];
};

/* Starts a daemon at an address of its own, with up to two options (NULL: none). err: its standard error; -1: that of the
 * program. */
static inline void hostile_start(struct hostile *h, int err, const char *option, const char *more)
{
    const char *build = getenv("VT_BUILD");
    char path[512], fd[16], address[32];
    unsigned number = (unsigned)getpid();
    int ready[2];
    char c;

    if (!build) {
        printf("skip - VT_BUILD is not set\n");
        exit(77);
    }
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof(path), "%s/bin/pumiced", build);
    snprintf(address, sizeof(address), "127.%u.%u.%u", 41 + number / 62500 % 80, number / 250 % 250, number % 250 + 1);
    snprintf(h->dir, sizeof(h->dir), "%s/hostile-XXXXXX", P_tmpdir);
    need(mkdtemp(h->dir) && chmod(h->dir, 0755) == 0);
    snprintf(h->socket, sizeof(h->socket), "%s/sock", h->dir);
    need(pipe(ready) == 0);
    h->daemon = fork();
    need(h->daemon >= 0);
    if (h->daemon == 0) {
        const char *argv[12] = {path, "--socket", h->socket, "--address", address, "--ready-fd", fd};
        unsigned n = 7;

        close(ready[0]);
        snprintf(fd, sizeof(fd), "%d", ready[1]);
        if (geteuid() == 0) {
            argv[n++] = "--group";
            argv[n++] = HOSTILE_GROUP;
        }
        argv[n++] = option;
        if (option)
            argv[n] = more;
        if (err >= 0)
            dup2(err, STDERR_FILENO);
        unsetenv("LD_PRELOAD");
        execv(path, (char **)argv);
        _exit(127);
    }
    close(ready[1]);
    need(read(ready[0], &c, 1) == 1);
    close(ready[0]);
    if (geteuid() != 0)
        printf("# skipped: a hostile member of another user: the test does not run as root\n");
}

/* Ends the daemon. True if it ended by itself within 20 seconds. */
static inline bool hostile_stop(struct hostile *h)
{
    int status = -1, n = 0;

    kill(h->daemon, SIGTERM);
    while (n++ < 200 && waitpid(h->daemon, &status, WNOHANG) == 0)
        usleep(100000);
    if (n > 200) {
        kill(h->daemon, SIGKILL);
        waitpid(h->daemon, NULL, 0);
    }
    unlink(h->socket);
    rmdir(h->dir);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Becomes another user for the rest of this process, if it runs as root. */
static inline void hostile_become(uid_t uid)
{
    if (geteuid() == 0)
        need(setgroups(0, NULL) == 0 && setgid(getgrnam(HOSTILE_GROUP)->gr_gid) == 0 && setuid(uid) == 0);
}

static inline int hostile_connect(const struct hostile *h)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    need(sock >= 0);
    memcpy(sa.sun_path, h->socket, strlen(h->socket) + 1);
    need(connect(sock, (struct sockaddr *)&sa, sizeof(sa)) == 0);
    return sock;
}

/* Sends a request with n descriptors, and does not wait for the reply. */
static inline bool hostile_send(int sock, uint32_t op, const void *rq, size_t len, const int *fd, unsigned n)
{
    return control_send(sock, op, rq, (uint32_t)len, fd, n, 0);
}

/* Waits for a reply. Copies at most size bytes of its payload. Returns its status; 1: there is none within
 * HOSTILE_ANSWER_S seconds; 2: the connection ended. */
static inline int hostile_reply(int sock, void *payload, size_t size)
{
    char text[PM_MSG_MAX];
    struct pollfd p = {.fd = sock, .events = POLLIN};
    struct pm_reply head;

    if (poll(&p, 1, HOSTILE_ANSWER_S * 1000) != 1)
        return 1;
    ssize_t n = recv(sock, text, sizeof(text), 0); /* descriptors of the reply are dropped */
    if (n < 0 && errno == ECONNRESET) /* the daemon refused the request unread; its reply comes after this error */
        n = recv(sock, text, sizeof(text), 0);
    if (n < (ssize_t)sizeof(head))
        return 2;
    memcpy(&head, text, sizeof(head));
    if (payload)
        memcpy(payload, text + sizeof(head), (size_t)n - sizeof(head) < size ? (size_t)n - sizeof(head) : size);
    return head.status;
}

/* Does the daemon answer a request without payload, on a new connection? */
static inline bool hostile_answers(const struct hostile *h, uint32_t op)
{
    int sock = hostile_connect(h);
    bool answers = hostile_send(sock, op, NULL, 0, NULL, 0) && hostile_reply(sock, NULL, 0) == 0;

    close(sock);
    return answers;
}

/* Opens device 0. Without a way to the memory of the program, unless fd is that of /proc/self/mem. Returns the status,
 * as hostile_reply. */
static inline int hostile_open(int sock, const int *fd, unsigned n)
{
    static uint64_t probe = 0x1234567;
    struct pm_open_req rq = {.abi_version = PM_ABI_VERSION, .probe_va = (uintptr_t)&probe, .probe_value = probe + !!n};

    return hostile_send(sock, PM_OP_OPEN, &rq, sizeof(rq), fd, n) ? hostile_reply(sock, NULL, 0) : 2;
}

/* The bystander: the main thread answers (LIST), and so does the thread of the device (STATUS, OPEN). As root, the
 * bystander is another user. It prints the longest time that all of this takes, of some times; docs/security.md has such
 * figures. */
#define HOSTILE_TIMES 10

static inline bool hostile_bystander(const struct hostile *h)
{
    int status = -1;

    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        double longest = 0;
        bool served = true;

        hostile_become(HOSTILE_BYSTANDER_UID);
        for (int i = 0; i < HOSTILE_TIMES && served; i++) {
            double begin = vt_now();
            int sock = hostile_connect(h);
            served = hostile_open(sock, NULL, 0) == 0;

            close(sock);
            served = served && hostile_answers(h, PM_OP_LIST) && hostile_answers(h, PM_OP_STATUS);
            longest = vt_now() - begin > longest ? vt_now() - begin : longest;
        }
        printf("# three answers took at most %.1f ms\n", longest * 1000);
        fflush(stdout);
        _exit(!served);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* The number that the status of the daemon has for a name. */
static inline long hostile_status_number(const struct hostile *h, const char *name)
{
    char command[512], line[256], *at = NULL;
    long n = -1;

    snprintf(command, sizeof(command), "%s/bin/pumice status --json --socket %s", getenv("VT_BUILD"), h->socket);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof(line), f)) {
        at = strstr(line, name);
        if (at)
            n = strtol(at + strlen(name) + 2, NULL, 10); /* behind the quote and the colon */
    }
    if (f)
        pclose(f);
    return n;
}

static int hostile_ask = -1, hostile_answer = -1; /* pipes to and from the process that started the attack */

/* For an attack: stops the daemon with SIGSTOP, or lets it go on. So what happens in between happens before the daemon
 * sees any of it. */
static inline void hostile_pause(bool stop)
{
    char c;

    need(write(hostile_ask, stop ? "s" : "c", 1) == 1 && read(hostile_answer, &c, 1) == 1);
}

/* Runs attack in another process, as the hostile user, and then checks that a bystander is served while that process
 * still holds everything it has. */
static inline void hostile_attack(const struct hostile *h, void (*attack)(const struct hostile *h), const char *what)
{
    int done[2], end[2];
    char c, text[256];

    need(pipe(done) == 0 && pipe(end) == 0);
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        close(done[0]);
        close(end[1]);
        hostile_become(HOSTILE_UID);
        hostile_ask = done[1];
        hostile_answer = end[0];
        alarm(60);
        attack(h);
        fflush(stdout);
        need(write(done[1], "d", 1) == 1);
        (void)!read(end[0], &c, 1); /* until the bystander has finished */
        _exit(vt_failed);
    }
    close(done[1]);
    close(end[0]);
    while (read(done[0], &c, 1) == 1 && c != 'd') {
        kill(h->daemon, c == 's' ? SIGSTOP : SIGCONT);
        need(write(end[1], &c, 1) == 1);
    }
    usleep(100000);
    snprintf(text, sizeof(text), "%s: a bystander is served", what);
    ok(hostile_bystander(h), text);
    close(done[0]);
    close(end[1]);
    int status = -1;
    waitpid(pid, &status, 0);
    vt_failed |= status != 0;
}

#endif
