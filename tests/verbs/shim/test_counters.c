// SPDX-License-Identifier: BSD-2-Clause
/* A port's counters in /sys/class/infiniband, as programs read them. Each read from the beginning of the file gives
 * the current and exact value, also through a descriptor that stays open. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "pumice/abi.h"
#include "tests/verbs/ends.h"

static char port[300];

static const char *path_of(const char *file)
{
    static char path[700];
    snprintf(path, sizeof(path), "%s/%s", port, file);
    return path;
}

static int open_counter(const char *file)
{
    int fd = open(path_of(file), O_RDONLY);
    need(fd >= 0);
    return fd;
}

/* The number that a read from the beginning gives. -1: it is not a number and an end of line. */
static long long again(int fd)
{
    char text[32] = "", *end;
    if (lseek(fd, 0, SEEK_SET) != 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return -1;
    long long v = strtoll(text, &end, 10);
    return end > text && strcmp(end, "\n") == 0 ? v : -1;
}

/* The counters of the host with this socket. */
static long long now(const char *socket, const char *file)
{
    char *own = strdup(getenv("PUMICE_SOCKET"));
    setenv("PUMICE_SOCKET", socket, 1);
    FILE *f = fopen(path_of(file), "r");
    setenv("PUMICE_SOCKET", own, 1);
    free(own);
    char line[32] = "";
    need(f && fgets(line, sizeof(line), f));
    fclose(f);
    return strtoll(line, NULL, 10);
}

static void send_five(struct vt_pair *p)
{
    struct ibv_wc wc[5];
    for (unsigned i = 0; i < 5; i++)
        need(vt_recv(p, 1, i, 0, 64) == 0);
    for (unsigned i = 0; i < 5; i++)
        need(vt_send(p, 0, i, 0, 64, IBV_SEND_SIGNALED) == 0);
    need(vt_poll(p->scq, 5, wc) == 5 && vt_poll(p->rcq, 5, wc) == 5);
}

static void stays_open(struct ibv_context *c)
{
    struct vt_pair p = {0};
    char text[32];
    struct stat st;
    int fd = open_counter("hw_counters/rdma_sends"), recvs = open_counter("hw_counters/rdma_recvs");
    long long sends_before = again(fd), recvs_before = again(recvs), before = 0, after = 0;
    vt_pair_make(&p, c, NULL);
    vt_connect(&p);
    ok(sends_before >= 0 && recvs_before >= 0 && again(fd) == sends_before, "numbers");
    send_five(&p);
    ok(again(fd) == sends_before + 5 && again(recvs) == recvs_before + 5,
       "current, through descriptors that stay open");
    send_five(&p);
    ok(read(fd, text, sizeof(text)) == 0, "a second read is at the end");
    ok(pread(fd, text, sizeof(text), 0) > 0 && strtoll(text, NULL, 10) == sends_before + 10, "pread, current");
    ok(pread(fd, text, 1, 0) == 1 && pread(fd, text + 1, 31, 1) > 0 && strtoll(text, NULL, 10) == sends_before + 10,
       "read in parts");
    ok(now(getenv("PUMICE_SOCKET"), "hw_counters/rdma_sends") == sends_before + 10, "a stream");
    ok(fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0444, "a file that is read only");
    before = again(fd);
    pid_t child = fork();
    if (child == 0)
        _exit(again(fd) == before ? 0 : 1);
    int status = -1;
    ok(waitpid(child, &status, 0) == child && status == 0, "a child reads it");
    send_five(&p);
    after = again(fd);
    ok(after == before + 5, "and then the parent");
    ok(vt_pair_end(&p), "all is closed");
    close(fd);
    close(recvs);
}

/* The calls that programs compiled with _FORTIFY_SOURCE make to read. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t len, off_t at, size_t size);
ssize_t __pread64_chk(int fd, void *buf, size_t len, off64_t at, size_t size);

static bool ends(unsigned way)
{
    char text[32];
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* libc says what has happened */
        if (way == 0)
            __read_chk(-1, text, sizeof(text) + 1, sizeof(text));
        else if (way == 1)
            __pread_chk(-1, text, sizeof(text) + 1, 0, sizeof(text));
        else
            __pread64_chk(-1, text, sizeof(text) + 1, 0, sizeof(text));
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void fortified(struct ibv_context *c)
{
    struct vt_pair p = {0};
    char text[3][32] = {{0}};
    int fd = open_counter("hw_counters/rdma_sends");
    long long before = again(fd);
    vt_pair_make(&p, c, NULL);
    vt_connect(&p);
    send_five(&p);
    ok(__pread_chk(fd, text[0], 31, 0, 32) > 0 && strtoll(text[0], NULL, 10) == before + 5, "a checked pread, current");
    send_five(&p);
    ok(__pread64_chk(fd, text[1], 32, 0, 32) > 0 && strtoll(text[1], NULL, 10) == before + 10, "as pread64");
    send_five(&p);
    ok(lseek(fd, 0, SEEK_SET) == 0 && __read_chk(fd, text[2], 31, 32) > 0 && strtoll(text[2], NULL, 10) == before + 15,
       "a checked read, current");
    ok(ends(0) && ends(1) && ends(2), "each ends a program that asks for more than it has room for");
    ok(vt_pair_end(&p), "all is closed");
    close(fd);
}

/* Another file may get the number of a descriptor that was a counter's. */
static void others_not(void)
{
    char text[8];
    int ends[2], fd = open_counter("counters/port_rcv_data");
    need(pipe(ends) == 0 && dup2(ends[0], fd) == fd && write(ends[1], "pipe", 4) == 4);
    ok(read(fd, text, sizeof(text)) == 4 && memcmp(text, "pipe", 4) == 0, "another file at the descriptor");
    close(ends[0]);
    close(ends[1]);
    close(fd);
    fd = memfd_create("mine", 0);
    need(fd >= 0 && pwrite(fd, "mine", 4, 0) == 4);
    ok(read(fd, text, sizeof(text)) == 4 && memcmp(text, "mine", 4) == 0, "a memory file of the program's own");
    close(fd);
    errno = 0;
    ok(read(-1, text, 1) == -1 && errno == EBADF, "no descriptor");
    ok(open(path_of("counters/no_such"), O_RDONLY) == -1 && errno == ENOENT, "no such counter");
    ok(open(path_of("counters/../hw_counters/no_such"), O_RDONLY) == -1 && errno == ENOENT, "by another way neither");
    ok(open(path_of("counters/symbol_error"), O_RDWR) == -1 && errno == EACCES, "not for writing");
    ok(!fopen(path_of("counters/symbol_error"), "r+") && errno == EACCES, "nor as a stream");
    ok(open(path_of("counters/symbol_error"), O_RDONLY | O_DIRECTORY) == -1 && errno == ENOTDIR, "no directory");
}

/* --- a number that changes hands --------------------------------------------------------------- */
#define LEN(text) (sizeof(text) - 1)
#define MINE "what the program has in a file of its own\n"
struct hands {
    int listener, counter, mine;
    bool served;
};

/* In place of the daemon: answers one request for a counter, but before that the number that is read from becomes
 * another file's. */
static void *slow_daemon(void *arg)
{
    struct hands *h = arg;
    char request[PM_MSG_MAX];
    struct {
        struct pm_reply head;
        struct pm_counter_rep rep;
    } __attribute__((packed)) reply = {{0, sizeof(reply.rep)}, {7}};
    int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
    h->served = recv(fd, request, sizeof(request), 0) > 0 && dup2(h->mine, h->counter) == h->counter &&
                send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) == sizeof(reply);
    close(fd);
    return NULL;
}

static void changes_hands(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct hands h = {.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), .mine = memfd_create("mine", 0)};
    char text[2 * sizeof(MINE)], *own = strdup(getenv("PUMICE_SOCKET"));
    pthread_t daemon;
    h.counter = open_counter("counters/port_rcv_data");
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/test_counters.%d", P_tmpdir, (int)getpid());
    need(h.listener >= 0 && h.mine >= 0 && write(h.mine, MINE, LEN(MINE)) == (ssize_t)LEN(MINE));
    need(bind(h.listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(h.listener, 1) == 0);
    setenv("PUMICE_SOCKET", at.sun_path, 1);
    need(pthread_create(&daemon, NULL, slow_daemon, &h) == 0);
    ssize_t n = pread(h.counter, text, sizeof(text), 0);
    need(pthread_join(daemon, NULL) == 0 && h.served);
    setenv("PUMICE_SOCKET", own, 1);
    free(own);
    unlink(at.sun_path);
    ok(n == (ssize_t)LEN(MINE) && memcmp(text, MINE, LEN(MINE)) == 0, "a read as the number changes hands");
    n = pread(h.mine, text, sizeof(text), 0);
    ok(n == (ssize_t)LEN(MINE) && memcmp(text, MINE, LEN(MINE)) == 0, "the program's own file is as it was");
    close(h.listener);
    close(h.mine);
    close(h.counter);
}

/* A read needs descriptors for a moment. */
static void few_descriptors(void)
{
    struct rlimit was;
    char text[8];
    int ends[2], fd = open_counter("counters/port_rcv_data"), other = open_counter("counters/port_rcv_data");
    need(pipe(ends) == 0 && dup2(ends[0], other) == other && write(ends[1], "pipe", 4) == 4);
    int next = dup(fd);
    close(next);
    for (unsigned i = 0; i < 10; i++)
        need(again(fd) >= 0);
    int then = dup(fd);
    close(then);
    ok(then == next, "none is left open");
    need(getrlimit(RLIMIT_NOFILE, &was) == 0 &&
         setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, was.rlim_max}) == 0);
    ssize_t n = pread(fd, text, sizeof(text), 0);
    ok(n == -1 && errno == ENODEV, "no number without a descriptor to ask for it");
    ok(read(other, text, sizeof(text)) == 4 && memcmp(text, "pipe", 4) == 0, "another file is read without one");
    need(setrlimit(RLIMIT_NOFILE, &was) == 0);
    ok(again(fd) >= 0, "and then there is a number again");
    close(ends[0]);
    close(ends[1]);
    close(other);
    close(fd);
}

static void names(void)
{
    static const char *const expected[] = {"counters/port_xmit_data",       "counters/symbol_error",
                                           "counters/unicast_rcv_packets",  "hw_counters/sent_pkts",
                                           "hw_counters/duplicate_request", "hw_counters/out_of_buffer",
                                           "hw_counters/crc_errors"};
    char real[PATH_MAX];
    unsigned n = 0, numbers = 0;
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ok(realpath(path_of(expected[i]), real) == real && strcmp(real, path_of(expected[i])) == 0, expected[i]);
    char *name = canonicalize_file_name(path_of("counters/../hw_counters/./sent_pkts"));
    ok(name && strcmp(name, path_of("hw_counters/sent_pkts")) == 0, "the name without detours");
    free(name);
    name = realpath("/proc/self/../self/exe", NULL);
    ok(name && name[0] == '/' && !strstr(name, "/proc/"), "other files' names");
    free(name);
    ok(!realpath(path_of("counters/no_such"), NULL) && errno == ENOENT, "no name of what is not there");
    static const char *const dirs[] = {"counters", "hw_counters"};
    for (unsigned i = 0; i < 2; i++) {
        DIR *dir = opendir(path_of(dirs[i]));
        for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
            char file[300];
            if (e->d_name[0] == '.')
                continue;
            snprintf(file, sizeof(file), "%s/%s", dirs[i], e->d_name);
            int fd = open_counter(file);
            numbers += again(fd) >= 0;
            n++;
            close(fd);
        }
        if (dir)
            closedir(dir);
    }
    ok(n > 50 && numbers == n, "each file in the folders has a number");
}

#define SENT 10000 /* bytes: 10 packets */
/* The exact number of bytes that a WRITE to another host puts on the wire, at both ends. */
static void to_the_byte(struct ibv_context *ca, struct ibv_context *cb)
{
    static const char *const files[] = {"counters/port_xmit_data", "counters/port_xmit_packets",
                                        "counters/unicast_xmit_packets", "counters/multicast_xmit_packets",
                                        "hw_counters/completer_retry_err"};
    const char *peer = getenv("VT_PEER_SOCKET");
    struct vt_end a, b;
    int fd[5];
    long long grown[5], repeated;
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    for (unsigned i = 0; i < 5; i++)
        grown[i] = -again(fd[i] = open_counter(files[i]));
    long long rcvd = -now(peer, "counters/port_rcv_data"), packets = -now(peer, "counters/port_rcv_packets");
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)b.buf, .rkey = b.mr->rkey}};
    need(vt_end_post(&a, &wr, 0, SENT) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 5; i++) {
        grown[i] += again(fd[i]);
        close(fd[i]);
    }
    rcvd += now(peer, "counters/port_rcv_data");
    packets += now(peer, "counters/port_rcv_packets");
    repeated = grown[4];
    /* Each packet has a BTH and an ICRC, the first a RETH. */
    ok(repeated ? grown[0] > (SENT + 10 * 16 + 16) / 4 : grown[0] == (SENT + 10 * 16 + 16) / 4, "words sent");
    ok(grown[1] == 10 + repeated && grown[2] == grown[1] && grown[3] == 0, "packets sent");
    ok(repeated ? packets >= 10 : packets == 10 && rcvd == grown[0], "received at the other end");
    need(vt_end_close(&a) && vt_end_close(&b));
}

static void daemon_gone(void)
{
    const char *pid = getenv("VT_DAEMON_PID");
    char text[32];
    if (!pid)
        return;
    int fd = open_counter("counters/port_rcv_data"), rc = 0;
    need(kill((pid_t)atoi(pid), SIGKILL) == 0);
    for (double end = vt_now() + 10; rc >= 0 && vt_now() < end;) { /* it may take a moment to die */
        need(lseek(fd, 0, SEEK_SET) == 0);
        rc = (int)read(fd, text, sizeof(text));
    }
    ok(rc == -1 && errno == ENODEV, "no number of a daemon that is gone");
    ok(open(path_of("counters/port_rcv_data"), O_RDONLY) == -1 && errno == ENODEV, "nor is the counter opened");
    close(fd);
}

int main(void)
{
    VT_OWN("counters as files of the client library");
    struct ibv_context *a = vt_open(), *b = vt_open_peer();
    snprintf(port, sizeof(port), "%s/ports/1", a->device->ibdev_path);
    names();
    stays_open(a);
    fortified(a);
    others_not();
    changes_hands();
    few_descriptors();
    if (b) {
        to_the_byte(a, b);
        need(ibv_close_device(b) == 0);
    }
    need(ibv_close_device(a) == 0);
    daemon_gone();
    return vt_failed;
}
