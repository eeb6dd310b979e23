// SPDX-License-Identifier: BSD-2-Clause
/* fork() while another thread is in the middle of a call. The child has copies of the locks that this thread held,
 * but no thread that releases them. Calls of the child must not wait for them. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/verbs/vt.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    printf("skip - a sanitizer has its own calloc\n");
    return 77;
}
#else

#define BIG 4096 /* bytes: of a device, or of a part of a table */

/* A thread can stop in its next allocation of at least so many bytes, while it holds its locks. */
static _Thread_local bool stops;
static _Atomic int inside, go_on;

void *__libc_calloc(size_t num, size_t size);
void *calloc(size_t num, size_t size)
{
    if (stops && num * size >= BIG) {
        inside = 1;
        while (!go_on)
            usleep(1000);
        stops = false;
    }
    return __libc_calloc(num, size);
}

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mw *mw;
static struct ibv_cq_ex *cq;
static char memory[4096];

static void *registers(void *arg)
{
    (void)arg;
    stops = true;
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    return (void *)(uintptr_t)(mr && ibv_dereg_mr(mr) == 0);
}

static void *lists(void *arg)
{
    int num;
    setenv("PUMICE_SOCKET", arg, 1);
    stops = true;
    struct ibv_device **list = ibv_get_device_list(&num);
    bool right = list && num == 1;
    ibv_free_device_list(list);
    return (void *)(uintptr_t)right;
}

static void *polls(void *arg)
{
    struct ibv_poll_cq_attr a = {0};
    bool right = ibv_start_poll(arg, &a) == 0;
    inside = 1;
    while (!go_on)
        usleep(1000);
    if (right)
        ibv_end_poll(arg);
    return (void *)(uintptr_t)right;
}

static bool advises_deallocs(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = sizeof(memory), .lkey = 1};
    return ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EIO && ibv_dealloc_mw(mw) == 0;
}
static bool lists_again(void)
{
    int num;
    struct ibv_device **list = ibv_get_device_list(&num);
    bool right = list && num == 1;
    ibv_free_device_list(list);
    return right;
}
static bool resizes(void)
{
    return ibv_resize_cq(ibv_cq_ex_to_cq(cq), 32) == EIO;
}

/* Calls `call` in a child process while the thread is in the middle of its work. True if both succeed. */
static bool meanwhile(void *(*thread)(void *), void *arg, bool (*call)(void))
{
    pthread_t t;
    void *right;
    int status;
    inside = go_on = 0;
    need(pthread_create(&t, NULL, thread, arg) == 0);
    while (!inside)
        usleep(1000);
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        alarm(5);
        _exit(call() ? 0 : 1);
    }
    need(waitpid(pid, &status, 0) == pid);
    go_on = 1;
    need(pthread_join(t, &right) == 0 && right);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    VT_OWN("locks of the client library");
    struct ibv_cq_init_attr_ex a = {.cqe = 16};
    struct vt_pair p = {0};
    char *own = getenv("PUMICE_SOCKET"), *peer = getenv("VT_PEER_SOCKET");
    ctx = vt_open();
    need((pd = ibv_alloc_pd(ctx)) && (mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2)));
    ok(meanwhile(registers, NULL, advises_deallocs),
       "a thread registers memory, and the child asks for pages, EIO, and drops a window");
    if (own && peer) {
        own = strdup(own);
        ok(meanwhile(lists, peer, lists_again), "a thread lists devices, and the child does");
        setenv("PUMICE_SOCKET", own, 1);
        free(own);
    }
    need((cq = ibv_create_cq_ex(ctx, &a)));
    p.scq = ibv_cq_ex_to_cq(cq);
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    need(vt_recv(&p, 1, 1, 64, 8) == 0 && vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0);
    usleep(100000);
    ok(meanwhile(polls, cq, resizes), "a thread polls, and the child resizes its copy of the CQ: EIO");
    ok(vt_pair_end(&p) && ibv_dealloc_mw(mw) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(ctx) == 0,
       "everything is destroyed");
    return vt_failed;
}
#endif
