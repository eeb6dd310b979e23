// SPDX-License-Identifier: BSD-2-Clause
/* Memory that never answers: of a FUSE file whose server is silent, and of a userfaultfd that nobody reads. The session
 * of its program ends, and another program on the same device goes on. The program starts itself as the one that has
 * such memory. Most of it needs root. VT_STUCK=served: only memory that a daemon does not wait for until its limit. */
#include <dirent.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "daemon/base/sanitizer.h"
#include "tests/verbs/life/silent_fuse.h"
#include "tests/verbs/vt.h"

/* As in daemon/threads/takeover.c. */
#if defined(__x86_64__) && !SANITIZED
#define TAKEOVER_POSSIBLE true
#else
#define TAKEOVER_POSSIBLE false
#endif

#define AREA 65536u
#define PAUSE_MAX 15.0 /* seconds; the limit of the daemon is three */

static struct vt_pair p;

/* --- the program with such memory --------------------------------------------------------------- */

static bool make_stuck(char *area, const char *dir)
{
    if (strcmp(dir, "uffd") != 0) {
        char path[64];
        /* A file of its own: a page that is being read would delay the others who open the file. */
        snprintf(path, sizeof(path), "%s/%d", dir, (int)getpid());
        int fd = open(path, O_RDWR | O_CLOEXEC);
        return fd >= 0 && mmap(area, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == area;
    }
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)area, AREA}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0 &&
           madvise(area, AREA, MADV_DONTNEED) == 0;
}

static struct ibv_comp_channel *channel; /* of p.scq, for "events" */

/* The kernel locks the pipe of the events while this waits. */
static void *read_events(void *area)
{
    return read(channel->fd, area, 8) == 8 ? area : NULL;
}

static void write_own(uint32_t lkey, uint32_t rkey)
{
    struct ibv_sge sge = {.addr = (uintptr_t)p.buf, .length = 8, .lkey = lkey};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)p.buf + 64;
    wr.wr.rdma.rkey = rkey;
    need(ibv_req_notify_cq(p.scq, 0) == 0 && ibv_post_send(p.qp[0], &wr, &bad) == 0);
}

static void use_events(char *area)
{
    struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
    pthread_t thread;

    write_own(p.mr->lkey, p.mr->rkey);
    need(poll(&readable, 1, 5000) == 1 && pthread_create(&thread, NULL, read_events, area) == 0);
    usleep(100000); /* until the thread waits; if it does not yet, it waits a moment later */
    for (int i = 0; i < 8; i++) {
        write_own(p.mr->lkey, p.mr->rkey);
        usleep(20000);
    }
}

static void use(const char *how, char *area, struct ibv_mr *mr)
{
    struct ibv_sge sge = {.addr = (uintptr_t)p.buf, .length = 8192, .lkey = p.mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)area;
    wr.wr.rdma.rkey = mr->rkey;
    if (!strcmp(how, "source")) {
        sge = (struct ibv_sge){.addr = (uintptr_t)area, .length = 8192, .lkey = mr->lkey};
        wr.wr.rdma.remote_addr = (uintptr_t)p.buf;
        wr.wr.rdma.rkey = p.mr->rkey;
    } else if (!strcmp(how, "atomic")) {
        sge.length = 8;
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = (uintptr_t)area;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = mr->rkey;
    } else if (!strcmp(how, "read")) {
        wr.opcode = IBV_WR_RDMA_READ;
    }
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
}

/* Writes a byte to standard output when the daemon has ended the session. It does not report by its exit code, because
 * it may never end: with such memory, the end of a process waits for the server, too. */
static int attack(const char *how, const char *dir, int report)
{
    struct ibv_async_event ev;
    struct ibv_context *ctx = vt_open();

    if (!strcmp(how, "events")) {
        need((channel = ibv_create_comp_channel(ctx)) != NULL);
        need((p.scq = ibv_create_cq(ctx, 64, NULL, channel, 0)) != NULL);
    }
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(area != MAP_FAILED);
    memset(area, 'a', AREA);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, area, AREA,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_ATOMIC);
    need(mr && make_stuck(area, dir));
    if (!strcmp(how, "register"))
        need(!ibv_reg_mr(p.pd, area, AREA,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC) &&
             errno == ETIMEDOUT);
    else if (channel)
        use_events(area);
    else
        use(how, area, mr);
    do {
        need(ibv_get_async_event(ctx, &ev) == 0);
        ibv_ack_async_event(&ev);
    } while (ev.event_type != IBV_EVENT_DEVICE_FATAL);
    return write(report, "", 1) == 1 ? 0 : 1;
}

/* --- the other program -------------------------------------------------------------------------- */

/* One WRITE of each size. False: it did not complete, or its data are wrong. */
static bool works(void)
{
    static char fill;
    const uint32_t size[] = {8, 20000};

    for (unsigned i = 0; i < 2; i++) {
        struct ibv_sge sge = {.addr = (uintptr_t)p.buf, .length = size[i], .lkey = p.mr->lkey};
        struct ibv_send_wr wr = {
            .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
        struct ibv_send_wr *bad;
        struct ibv_wc wc;

        memset(p.buf, ++fill, size[i]);
        wr.wr.rdma.remote_addr = (uintptr_t)p.buf + 32768;
        wr.wr.rdma.rkey = p.mr->rkey;
        if (ibv_post_send(p.qp[0], &wr, &bad) != 0 || vt_poll(p.scq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
            memcmp(p.buf, p.buf + 32768, size[i]) != 0)
            return false;
    }
    return true;
}

static void attack_and_work(const char *how, const char *dir)
{
    char what[128], fd[16], byte;
    double longest = 0, end = vt_now() + 20;
    bool good = true;
    int report[2];

    need(pipe(report) == 0 && fcntl(report[0], F_SETFL, O_NONBLOCK) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(fd, sizeof(fd), "%d", report[1]);
        execl("/proc/self/exe", "test_stuck_memory", how, dir, fd, (char *)NULL);
        _exit(127);
    }
    ssize_t ended = -1;
    while (good && vt_now() < end && (ended = read(report[0], &byte, 1)) != 1) {
        double before = vt_now();
        good = works();
        if (vt_now() - before > longest)
            longest = vt_now() - before;
    }
    snprintf(what, sizeof(what), "%s, %s: another program goes on", strcmp(dir, "uffd") ? "FUSE" : dir, how);
    ok(good && longest < PAUSE_MAX, what);
    printf("# the longest pause: %.3f s\n", longest);
    snprintf(what, sizeof(what), "%s, %s: the session of the program ends", strcmp(dir, "uffd") ? "FUSE" : dir, how);
    ok(ended == 1, what);
    kill(child, SIGKILL);
    close(report[0]);
    close(report[1]);
}

/* Threads that close descriptors and threads that give memory back end by themselves, up to ten seconds after their work. */
static bool comes_and_goes(const char *task)
{
    char path[320], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%s/task/%s/comm", getenv("VT_DAEMON_PID"), task);
    FILE *f = fopen(path, "r");
    if (f) {
        if (!fgets(name, sizeof(name), f))
            name[0] = 0;
        fclose(f);
    }
    return strncmp(name, "fd-closer", 9) == 0 || strncmp(name, "memory-trim", 11) == 0;
}

/* Number of the daemon's threads, without those that come and go. */
static int threads_of_daemon(void)
{
    char path[64];
    struct dirent *e;
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%s/task", getenv("VT_DAEMON_PID"));
    DIR *d = opendir(path);
    while (d && (e = readdir(d)) != NULL)
        n += e->d_name[0] != '.' && !comes_and_goes(e->d_name);
    if (d)
        closedir(d);
    return n;
}

/* The same, when the daemon has nothing to do. A new thread has the name of its maker until it sets its own, so the smallest number of
 * several is right. */
static int threads_without_work(void)
{
    int least = threads_of_daemon();

    for (int i = 0; i < 20; i++) {
        usleep(10000);
        int n = threads_of_daemon();
        least = n < least ? n : least;
    }
    return least;
}

/* For a failure: the names of the daemon's threads, and where each waits in the kernel. */
static void print_threads(void)
{
    char path[320], text[2][64];
    struct dirent *e;

    snprintf(path, sizeof(path), "/proc/%s/task", getenv("VT_DAEMON_PID"));
    DIR *d = opendir(path);
    while (d && (e = readdir(d)) != NULL) {
        static const char *const file[] = {"comm", "wchan"};
        if (e->d_name[0] == '.')
            continue;
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", getenv("VT_DAEMON_PID"), e->d_name, file[i]);
            FILE *f = fopen(path, "r");
            if (!f || !fgets(text[i], sizeof(text[i]), f))
                strcpy(text[i], "?");
            text[i][strcspn(text[i], "\n")] = 0;
            if (f)
                fclose(f);
        }
        printf(" %s (%s)", text[0], text[1]);
    }
    printf("\n");
    if (d)
        closedir(d);
}

static bool threads_are(int n)
{
    for (int i = 0; i < 100 && threads_of_daemon() != n; i++)
        usleep(50000);
    int now = threads_of_daemon();
    if (now != n) {
        printf("# %d threads, not %d:", now, n);
        print_threads();
    }
    return now == n;
}

static void attack_all(const char *dir, const char *const how[], unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        attack_and_work(how[i], dir);
}

int main(int argc, char **argv)
{
    static const char *const uffd[] = {"source", "target", "atomic", "register", "events"};
    static const char *const fuse[] = {"source", "target", "atomic", "read", "register"};
    struct silent_fuse f;

    if (argc == 4)
        return attack(argv[1], argv[2], atoi(argv[3]));
    VT_OWN("memory that does not answer");
    if (!TAKEOVER_POSSIBLE) {
        printf("skip - no thread can take over the work of another, because of a sanitizer or the processor\n");
        return 77;
    }
    if (!getenv("VT_DAEMON_PID")) {
        printf("skip - VT_DAEMON_PID is not set\n");
        return 77;
    }
    if (geteuid() != 0) {
        printf("skip - memory that does not answer: not root\n");
        return 77;
    }
    vt_pair_make(&p, vt_open(), NULL);
    vt_connect(&p);
    ok(works(), "a program works");
    int threads = threads_without_work();

    /* The last one, "events", waits for the limit. */
    attack_all("uffd", uffd, sizeof(uffd) / sizeof(uffd[0]) - (getenv("VT_STUCK") != NULL));
    ok(threads_are(threads), "the threads that waited for a userfaultfd have ended with its program");

    const char *why = unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
                          ? "no mount namespace"
                          : silent_fuse_start(&f);
    if (why) {
        printf("# skipped: a silent FUSE server: %s\n", why);
    } else {
        attack_all(f.dir, fuse, sizeof(fuse) / sizeof(fuse[0]));
        ok(threads_of_daemon() > threads, "threads wait for the FUSE server");
        silent_fuse_end(&f);
        ok(threads_are(threads), "and end with it");
    }
    ok(works(), "the other program still works");
    return vt_failed;
}
