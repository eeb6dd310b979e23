// SPDX-License-Identifier: BSD-2-Clause
/* Makes each call of the daemon fail in turn. For the n-th call of a kind, a session lives from its opening to its end
 * while that call fails. Then the daemon must answer, and have no object, no descriptor and no memory of it left. No
 * step of the client may hang, and none may report success without effect.
 *
 * usage: each_call [--quick] [--first N] [KIND...]       exit 0 or 1
 *   --quick     not each call: about LIVES_QUICK lives for each kind and error, spread evenly
 *   --first N   begin with the N-th call
 * From the environment: PUMICE_SOCKET and VT_DAEMON_PID of the daemon with the library of preload.c, VT_PEER_SOCKET of
 * another one, FAILING_PAGE. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/failing/daemon_state.h"
#include "tests/failing/failing.h"
#include "tests/failing/life.h"

#define LIVES_QUICK 8
/* Kinds whose number of calls depends on the time that a life takes. Not every one of these calls is worth a life. */
#define LIVES_MANY 400
/* Failures in a row, besides single ones. */
#define ROW 4
#define ERRORS_MAX 10
#define SETTLE_S 5.0
/* The C library and libev keep memory for later. It is not the same after each life. */
#define MAPPINGS_SLACK 6
#define BLOCKS_SLACK 4
/* What the C library has for a thread: a stack and an area of malloc, each with a guard; and some blocks. It keeps them for
 * the next thread. */
#define THREAD_MAPPINGS 4
#define THREAD_BLOCKS 4

struct plan {
    const char *name;
    enum failing_kind kind;
    int errors[4];
    bool by_time; /* the number of calls is not the same in each life */
};

/* clang-format off */
static const struct plan plans[] = {
    {"malloc",     FAILING_MALLOC,     {ENOMEM}, false},
    {"mmap",       FAILING_MMAP,       {ENOMEM}, false},
    {"memfd",      FAILING_MEMFD,      {ENOMEM, EMFILE}, false},
    {"descriptor", FAILING_DESCRIPTOR, {EMFILE, ENFILE}, false},
    {"socket",     FAILING_SOCKET,     {ENOBUFS, ENOMEM}, false},
    {"send",       FAILING_SEND,       {ENOBUFS, ENOMEM, EINTR, EAGAIN}, true},
    {"receive",    FAILING_RECEIVE,    {ENOMEM, EINTR, EAGAIN}, true},
    {"epoll_ctl",  FAILING_EPOLL_CTL,  {ENOMEM, ENOSPC}, false},
    {"wait",       FAILING_WAIT,       {EINTR, ENOMEM}, true},
    {"write",      FAILING_WRITE,      {ENOMEM, EAGAIN, EINTR}, true},
};
/* clang-format on */
#define PLANS (sizeof(plans) / sizeof(plans[0]))

static struct failing_page *page;
static const char *own_socket;
static pid_t daemon_pid;
static struct life_peer peer;
static struct daemon_state before; /* with no session */
static int64_t blocks_before;
static unsigned most_threads; /* at once, so far. Threads that close descriptors and give memory back come and go. */
static unsigned errors;
static char now_running[128];

/* --- checks ------------------------------------------------------------------------------------ */

static void complain(const char *what)
{
    printf("not ok - %s: %s\n", now_running, what);
    fflush(stdout);
    if (++errors >= ERRORS_MAX) {
        printf("# too many errors\n");
        exit(1);
    }
}

static void on_alarm(int sig)
{
    static const char text[] = "not ok - the client hangs\n# ";

    (void)sig;
    if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 || write(STDOUT_FILENO, now_running, strlen(now_running)) < 0)
        _exit(2);
    _exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_as_before(const struct daemon_state *s)
{
    most_threads = s->threads > most_threads ? s->threads : most_threads;
    unsigned more =
        1 + (most_threads > before.threads ? most_threads - before.threads : 0); /* 1: came and went unseen */
    return s->objects == 0 && s->descriptors <= before.descriptors &&
           s->mappings <= before.mappings + MAPPINGS_SLACK + more * THREAD_MAPPINGS &&
           atomic_load(&page->blocks) <= blocks_before + BLOCKS_SLACK + more * THREAD_BLOCKS;
}

/* The session ends a moment after its client has closed it. */
static void check_daemon(void)
{
    double end = now() + SETTLE_S;
    struct daemon_state s;
    char text[200];

    for (;;) {
        if (!daemon_state_read(own_socket, daemon_pid, &s)) {
            complain("the daemon does not answer");
            printf("# the daemon is %s\n", kill(daemon_pid, 0) == 0 ? "there" : "gone");
            exit(1);
        }
        if (is_as_before(&s))
            return;
        if (now() > end)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    snprintf(text, sizeof(text), "left behind: %u objects, %d descriptors, %d mappings, %lld blocks of memory",
             s.objects, (int)(s.descriptors - before.descriptors), (int)(s.mappings - before.mappings),
             (long long)(atomic_load(&page->blocks) - blocks_before));
    complain(text);
    before = s;
    before.objects = 0;
    blocks_before = atomic_load(&page->blocks);
}

/* --- lives ------------------------------------------------------------------------------------- */

static void arm(const struct plan *p, int error, int64_t first, int64_t last)
{
    atomic_store(&page->kind, FAILING_NONE);
    atomic_store(&page->error, error);
    atomic_store(&page->first, first);
    atomic_store(&page->last, last);
    atomic_store(&page->calls, 0);
    atomic_store(&page->failed, 0);
    atomic_store(&page->kind, p ? p->kind : FAILING_NONE);
}

struct tally {
    unsigned lives, failed, hurt; /* lives; lives in which a call failed; lives in which the client got an error */
};

/* Returns the number of calls that failed. */
static int64_t live(const struct plan *p, int error, int64_t first, int64_t last, struct tally *t)
{
    snprintf(now_running, sizeof(now_running), "%s, %s, call %lld%s", p ? p->name : "nothing fails",
             p ? strerrorname_np(error) : "-", (long long)first, last > first ? " and some after it" : "");
    arm(p, error, first, last);
    alarm(60);
    struct life_result r = life_run(own_socket, &peer);
    alarm(0);
    int64_t failed = atomic_load(&page->failed);
    atomic_store(&page->kind, FAILING_NONE);
    if (r.wrong)
        complain(r.wrong);
    if (r.failed && failed == 0) {
        char text[128];

        snprintf(text, sizeof(text), "%s reports error %d, but no call has failed", r.failed, r.error);
        complain(text);
    }
    check_daemon();
    t->lives++;
    t->failed += failed > 0;
    t->hurt += r.failed != NULL;
    if (getenv("FAILING_TRACE"))
        printf("# %s: failed %lld; client: %s (%d)\n", now_running, (long long)failed, r.failed ? r.failed : "-",
               r.error);
    return failed;
}

static void run(const struct plan *p, int error, bool quick, int64_t first)
{
    struct tally t = {0}, none = {0}; /* none: a life in which nothing fails counts the calls */

    live(p, error, INT64_MAX, INT64_MAX, &none);
    int64_t calls = atomic_load(&page->calls), step = 1;
    int64_t most = quick ? LIVES_QUICK : p->by_time ? LIVES_MANY : INT64_MAX;
    if (calls > most)
        step = (calls + most - 1) / most;
    for (int64_t n = first; n <= calls; n += step) {
        live(p, error, n, n, &t);
        if (!quick)
            live(p, error, n, n + ROW - 1, &t);
    }
    printf("ok - %s, %s: %lld calls; %u lives, a call failed in %u of them, the client got an error in %u\n", p->name,
           strerrorname_np(error), (long long)calls, t.lives, t.failed, t.hurt);
    fflush(stdout);
}

/* --- the program ------------------------------------------------------------------------------- */

static bool prepare(void)
{
    const char *pid = getenv("VT_DAEMON_PID"), *other = getenv("VT_PEER_SOCKET"), *file = getenv("FAILING_PAGE");
    int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    struct tally t = {0};

    own_socket = getenv("PUMICE_SOCKET") ? strdup(getenv("PUMICE_SOCKET")) : NULL;
    if (!pid || !other || !own_socket || fd < 0)
        return false;
    daemon_pid = (pid_t)atoi(pid);
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED || !life_peer_open(&peer, other))
        return false;
    signal(SIGALRM, on_alarm);
    blocks_before = INT64_MAX / 2;
    before = (struct daemon_state){.descriptors = 1u << 20, .mappings = 1u << 20};
    for (int i = 0; i < 3; i++)
        live(NULL, 0, 0, 0, &t); /* so that the daemon has the memory that it keeps */
    blocks_before = atomic_load(&page->blocks);
    if (blocks_before < 10 || !daemon_state_read(own_socket, daemon_pid, &before))
        return false;
    blocks_before = atomic_load(&page->blocks);
    return true;
}

int main(int argc, char **argv)
{
    bool quick = false, all = true;
    int64_t first = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc)
            first = atoll(argv[++i]);
        else
            all = false;
    }
    if (!prepare()) {
        printf("not ok - the daemons, or the library in one of them, are not there: see tests/failing/run.sh\n");
        return 1;
    }
    for (unsigned i = 0; i < PLANS; i++) {
        bool chosen = all;

        for (int k = 1; k < argc; k++)
            chosen |= strcmp(argv[k], plans[i].name) == 0;
        for (unsigned e = 0; chosen && e < 4 && plans[i].errors[e]; e++)
            run(&plans[i], plans[i].errors[e], quick, first);
    }
    return errors > 0;
}
