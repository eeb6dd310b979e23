// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/sanitizer.h"

#if defined(__x86_64__) && !SANITIZED
#define SUPPORTED 1
#else
#define SUPPORTED 0
#endif

#define STACK_BYTES (8u << 20) /* as glibc gives a thread; only the pages that are used take memory */
#define GUARD_BYTES (64u << 10) /* below the stack; not accessible */
/* The watching thread looks four times in the limit of a call, but not more often and not more rarely than this. While
 * no call is under way, it looks half as often. */
#define TICK_MIN_NS (5 * NS_PER_MS)
#define TICK_MAX_NS (TAKEOVER_DOUBT_MS * NS_PER_MS / 4)
#define TICK_BETWEEN_NS (2 * TICK_MAX_NS)
#define IDLE_NS NS_PER_S /* without a call for this long, the watching thread sleeps until the next one */

/* The part that the switching code below knows by its offsets. */
struct takeover_cpu {
    _Atomic uint64_t call; /* number of the call that is under way; 0: none */
    void *sp; /* of the function, while a call is under way */
    void *carrier_sp; /* of the kernel thread that executes the function: where it left its own stack */
};

struct takeover {
    struct takeover_cpu cpu;
    _Atomic uint64_t calls; /* number of the latest call; only the function writes it */
    _Atomic uint32_t limit_ms; /* of that call */
    /* 0: the watching thread sleeps until the next call. A futex. */
    _Atomic uint32_t watched;
    _Atomic uint32_t lost;
    _Atomic uint32_t users; /* the owner, and each kernel thread */
    _Atomic bool ended;
    /* In /proc/self/task/TID of the kernel thread that executes the function; -1: can't be read. */
    _Atomic int stat_fd, wchan_fd;
    sem_t finished, watch_ended;
    const struct takeover_ops *ops;
    void *arg;
    const pthread_attr_t *attr; /* points to attr_copy; NULL: the default */
    uint8_t *stack;
};

/* --- switching stacks -------------------------------------------------------------------------- */

/* Returned to a kernel thread that executed the function. */
enum carried {
    CARRIED_TO_THE_END,
    CARRIED_UNTIL_LOST,
};

/* Executes fn(arg) on the stack that ends at `top`. */
enum carried takeover_begin(struct takeover_cpu *c, void *top, void (*fn)(void *), void *arg);
/* Continues the function in the calling kernel thread: its call returns `result`. */
enum carried takeover_resume(struct takeover_cpu *c, long result);
/* Makes the system call args[0] with the arguments args[1 … 6], and with `number` in c->call meanwhile. */
long takeover_call(struct takeover_cpu *c, const long *args, uint64_t number);

#if SUPPORTED
_Static_assert(offsetof(struct takeover_cpu, call) == 0 && offsetof(struct takeover_cpu, sp) == 8 &&
                   offsetof(struct takeover_cpu, carrier_sp) == 16,
               "the code below uses these offsets");

/* All three save the registers that belong to their caller on the stack that they leave, in the same order. When the
 * system call returns, takeover_call uses no stack until it knows that the call was not taken over: it removes its
 * number from c->call, if it is still there. Else it returns on the stack of its kernel thread, whose address it kept in
 * r13, as takeover_begin or takeover_resume. */
__asm__(".text\n"
        ".macro pumice_save\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        ".endm\n"
        ".macro pumice_restore_and_return\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n    ret\n"
        ".endm\n"
        ".globl takeover_begin\n.hidden takeover_begin\n.type takeover_begin, @function\n"
        "takeover_begin:\n"
        "    pumice_save\n"
        "    mov %rsp, 16(%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    push %rdi\n    push %rdi\n" /* twice, because a call expects an aligned stack */
        "    mov %rcx, %rdi\n"
        "    xor %ebp, %ebp\n"
        "    call *%rdx\n"
        "    pop %rdi\n    pop %rdi\n"
        "    mov 16(%rdi), %rsp\n" /* of the kernel thread that executes the end, maybe another one */
        "    xor %eax, %eax\n"
        "    pumice_restore_and_return\n"
        ".size takeover_begin, . - takeover_begin\n"
        ".globl takeover_resume\n.hidden takeover_resume\n.type takeover_resume, @function\n"
        "takeover_resume:\n"
        "    pumice_save\n"
        "    mov %rsp, 16(%rdi)\n"
        "    mov 8(%rdi), %rsp\n"
        "    mov %rsi, %rax\n"
        "    pumice_restore_and_return\n"
        ".size takeover_resume, . - takeover_resume\n"
        ".globl takeover_call\n.hidden takeover_call\n.type takeover_call, @function\n"
        "takeover_call:\n"
        "    pumice_save\n"
        "    mov %rdi, %rbx\n"
        "    mov %rdx, %r12\n"
        "    mov 16(%rdi), %r13\n"
        "    mov %rsp, 8(%rdi)\n"
        "    mov (%rsi), %rax\n"
        "    mov 8(%rsi), %rdi\n"
        "    mov 24(%rsi), %rdx\n"
        "    mov 32(%rsi), %r10\n"
        "    mov 40(%rsi), %r8\n"
        "    mov 48(%rsi), %r9\n"
        "    mov 16(%rsi), %rsi\n"
        "    mov %r12, (%rbx)\n"
        "    syscall\n"
        "    mov %rax, %r14\n"
        "    mov %r12, %rax\n"
        "    xor %ecx, %ecx\n"
        "    lock cmpxchg %rcx, (%rbx)\n"
        "    jne 1f\n"
        "    mov %r14, %rax\n"
        "    pumice_restore_and_return\n"
        "1:  mov %r13, %rsp\n"
        "    mov $1, %eax\n"
        "    pumice_restore_and_return\n"
        ".size takeover_call, . - takeover_call\n"
        ".purgem pumice_save\n.purgem pumice_restore_and_return\n");
#else
enum carried takeover_begin(struct takeover_cpu *c, void *top, void (*fn)(void *), void *arg)
{
    (void)c;
    (void)top;
    fn(arg);
    return CARRIED_TO_THE_END;
}

enum carried takeover_resume(struct takeover_cpu *c, long result)
{
    (void)c;
    (void)result;
    return CARRIED_UNTIL_LOST; /* never called: nothing is taken over */
}

long takeover_call(struct takeover_cpu *c, const long *args, uint64_t number)
{
    (void)c;
    (void)number;
    long r = syscall(args[0], args[1], args[2], args[3], args[4], args[5], args[6]);
    return r < 0 ? -errno : r;
}
#endif

bool takeover_supported(void)
{
    return SUPPORTED;
}

/* --- kernel threads ---------------------------------------------------------------------------- */

static void release(struct takeover *t)
{
    if (atomic_fetch_sub(&t->users, 1) != 1)
        return;
    munmap(t->stack, GUARD_BYTES + STACK_BYTES);
    if (t->stat_fd >= 0)
        close(t->stat_fd);
    if (t->wchan_fd >= 0)
        close(t->wchan_fd);
    sem_destroy(&t->finished);
    sem_destroy(&t->watch_ended);
    free(t);
}

static void reopen(_Atomic int *fd, const char *path)
{
    int old = atomic_exchange(fd, open(path, O_RDONLY | O_CLOEXEC));

    if (old >= 0)
        close(old);
}

/* The beginning of each kernel thread that executes the function. */
static void enter(struct takeover *t)
{
    reopen(&t->stat_fd, "/proc/thread-self/stat");
    reopen(&t->wchan_fd, "/proc/thread-self/wchan");
    t->ops->enter(t->arg);
}

/* The end of each kernel thread that executed the function. */
static void carried(struct takeover *t, enum carried how)
{
    if (how == CARRIED_TO_THE_END)
        sem_post(&t->finished);
    else
        atomic_fetch_sub(&t->lost, 1);
    release(t);
}

static void restrict_rights(const struct takeover *t)
{
    if (t->ops->restrict_rights)
        t->ops->restrict_rights(t->arg);
}

static void *carry(void *arg)
{
    struct takeover *t = arg;

    restrict_rights(t);
    enter(t);
    carried(t, takeover_begin(&t->cpu, t->stack + GUARD_BYTES + STACK_BYTES, t->ops->run, t->arg));
    return NULL;
}

static int start_thread(struct takeover *t, void *(*fn)(void *))
{
    pthread_t thread;

    atomic_fetch_add(&t->users, 1);
    int rc = -pthread_create(&thread, t->attr, fn, t);
    if (rc)
        atomic_fetch_sub(&t->users, 1); /* the caller is still a user */
    else
        pthread_detach(thread);
    return rc;
}

/* --- watching ---------------------------------------------------------------------------------- */

static void *watch(void *arg);

/* Takes the call over, if it lasts still. A new thread watches from now on, and the calling one executes the function.
 * False: the calling thread goes on watching. */
static bool take_over(struct takeover *t, uint64_t call)
{
    if (!t->ops->prepare(t->arg) || start_thread(t, watch) != 0)
        return false; /* out of memory: tried again at the next tick */
    if (atomic_compare_exchange_strong(&t->cpu.call, &call, 0)) {
        atomic_fetch_add(&t->lost, 1);
        t->ops->replaced(t->arg);
        enter(t);
        carried(t, takeover_resume(&t->cpu, -ETIMEDOUT));
    } else {
        release(t);
    }
    return true;
}

/* Makes the next call of the function visible, or shows the function that nobody watches: a barrier in all threads. It
 * spares the function one at each call. False: the kernel has none. */
static bool barrier_for_all(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void sleep_until_call(struct takeover *t, uint64_t seen)
{
    struct timespec second = {.tv_sec = 1};

    atomic_store(&t->watched, 0);
    bool safe = barrier_for_all();
    if (atomic_load(&t->calls) == seen && !atomic_load(&t->ended))
        syscall(SYS_futex, &t->watched, FUTEX_WAIT_PRIVATE, 0, safe ? NULL : &second, NULL, 0);
    atomic_store(&t->watched, 1);
}

#define PROC_TEXT 128u

/* Reads the beginning of a file of /proc. False: it can't be read, and the text is empty. */
static bool read_proc(int fd, char text[PROC_TEXT])
{
    ssize_t n = fd >= 0 ? pread(fd, text, PROC_TEXT - 1, 0) : -1;

    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Does the kernel thread sleep, so that it is the call that takes the time? Else it runs, or waits for a processor. */
static bool is_asleep(const struct takeover *t)
{
    char line[PROC_TEXT];

    if (!read_proc(atomic_load(&t->stat_fd), line))
        return true; /* unknown: then only the limit counts */
    const char *end = strrchr(line, ')'); /* of the name, which may hold anything */
    return !end || end[1] != ' ' || end[2] != 'R';
}

static void tick(const struct takeover *t, bool during_call)
{
    uint64_t ns = (uint64_t)atomic_load_explicit(&t->limit_ms, memory_order_relaxed) * NS_PER_MS / 4;
    uint64_t most = during_call ? TICK_MAX_NS : TICK_BETWEEN_NS;

    ns = ns < TICK_MIN_NS ? TICK_MIN_NS : ns > most ? most : ns;
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* The owner's answer for a call that sleeps in a function of the kernel. */
struct verdict {
    uint64_t call;
    char waits_in[PROC_TEXT];
    bool may_last;
};

/* Where does the call sleep? "": the kernel does not tell. */
static void read_wait(const struct takeover *t, char waits_in[PROC_TEXT])
{
    read_proc(atomic_load(&t->wchan_fd), waits_in);
    if (strcmp(waits_in, "0") == 0)
        waits_in[0] = 0;
}

/* Has the call slept for too long? */
static bool is_over_time(const struct takeover *t, uint64_t call, uint64_t slept_ns, struct verdict *v)
{
    uint64_t limit = (uint64_t)atomic_load(&t->limit_ms) * NS_PER_MS;
    char waits_in[PROC_TEXT];

    if (slept_ns < limit && (slept_ns < TAKEOVER_DOUBT_MS * NS_PER_MS || !t->ops->may_last))
        return false;
    read_wait(t, waits_in);
    if (slept_ns >= limit)
        return !t->ops->may_go_on || !t->ops->may_go_on(t->arg, waits_in, slept_ns);
    if (v->call != call || strcmp(v->waits_in, waits_in) != 0) {
        v->call = call;
        memcpy(v->waits_in, waits_in, sizeof(waits_in));
        v->may_last = t->ops->may_last(t->arg, waits_in);
    }
    return !v->may_last;
}

static void *watch(void *arg)
{
    struct takeover *t = arg;
    struct verdict verdict = {.call = 0};
    uint64_t seen = 0, since = clock_ns(); /* the latest call, and since when it sleeps or is over */

    prctl(PR_SET_NAME, "takeover");
    while (!atomic_load(&t->ended)) {
        uint64_t latest = atomic_load_explicit(&t->calls, memory_order_acquire), now = clock_ns();
        uint64_t call = atomic_load(&t->cpu.call);

        if (latest != seen || (call != 0 && !is_asleep(t))) {
            seen = latest;
            since = now;
        } else if (call == 0 && now - since >= IDLE_NS) {
            sleep_until_call(t, seen);
            since = clock_ns();
            continue;
        } else if (call == seen && call != 0 && is_over_time(t, call, now - since, &verdict) && take_over(t, call)) {
            return NULL;
        }
        tick(t, call != 0);
    }
    sem_post(&t->watch_ended);
    release(t);
    return NULL;
}

/* The first thread that watches. Those that it starts inherit its rights. */
static void *watch_first(void *arg)
{
    restrict_rights(arg);
    return watch(arg);
}

static void wake_watch(struct takeover *t)
{
    atomic_store(&t->watched, 1);
    syscall(SYS_futex, &t->watched, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- for the owner and the function ------------------------------------------------------------ */

long takeover_syscall(struct takeover *t, unsigned limit_ms, long nr, const long a[6])
{
    long args[7] = {nr, a[0], a[1], a[2], a[3], a[4], a[5]};
    uint64_t number = atomic_load_explicit(&t->calls, memory_order_relaxed) + 1;

    atomic_store_explicit(&t->limit_ms, limit_ms, memory_order_relaxed);
    atomic_store_explicit(&t->calls, number, memory_order_release);
    if (SUPPORTED && atomic_load_explicit(&t->watched, memory_order_relaxed) == 0)
        wake_watch(t);
    return takeover_call(&t->cpu, args, number);
}

unsigned takeover_lost(const struct takeover *t)
{
    return atomic_load(&t->lost);
}

int takeover_start(struct takeover **out, const struct takeover_ops *ops, void *arg, const pthread_attr_t *attr)
{
    struct takeover *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (t->stack == MAP_FAILED || mprotect(t->stack, GUARD_BYTES, PROT_NONE) != 0) {
        free(t);
        return -ENOMEM;
    }
    t->ops = ops;
    t->arg = arg;
    t->attr = attr;
    atomic_store(&t->users, 1);
    atomic_store(&t->watched, 1);
    atomic_store(&t->stat_fd, -1);
    atomic_store(&t->wchan_fd, -1);
    sem_init(&t->finished, 0, 0);
    sem_init(&t->watch_ended, 0, 0);
    /* Without this, membarrier fails, and the watching thread looks once in a second. */
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    *out = t;
    int rc = SUPPORTED ? start_thread(t, watch_first) : 0;
    if (rc == 0)
        rc = start_thread(t, carry);
    else
        sem_post(&t->watch_ended);
    if (rc == 0)
        return 0;
    sem_post(&t->finished);
    takeover_join(t);
    *out = NULL;
    return rc;
}

void takeover_join(struct takeover *t)
{
    while (sem_wait(&t->finished) != 0)
        ;
    atomic_store(&t->ended, true);
    wake_watch(t);
    while (SUPPORTED && sem_wait(&t->watch_ended) != 0)
        ;
    release(t);
}
