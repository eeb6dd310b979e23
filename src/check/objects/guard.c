// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/guard.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/check/base/next.h"

static bool (*touched)(uint64_t address, enum guard_access access, const void *where);
static struct sigaction program; /* the program's own action */
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned guards;

/* --- pages ------------------------------------------------------------------------------------- */

bool guard_can(uint64_t from, uint64_t to)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uint64_t at = from, begin, end;
    char line[512], rights[8];

    /* The mappings come in the order of their addresses. */
    while (maps && at < to && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, rights) != 3 || end <= at)
            continue;
        if (begin > at || rights[0] != 'r' || rights[1] != 'w' || rights[3] != 'p')
            break;
        at = end;
    }
    if (maps)
        fclose(maps);
    return at >= to;
}

void guard_set(struct guard *g, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    from = (from + page - 1) / page * page;
    to = to / page * page;
    *g = (struct guard){0};
    if (from >= to || guards == GUARDS_MAX ||
        mprotect((void *)from, to - from, PROT_NONE) != 0) // NOLINT: of the program
        return;
    *g = (struct guard){from, to};
    guards++;
}

void guard_lift(struct guard *g)
{
    if (g->from == g->to)
        return;
    mprotect((void *)g->from, g->to - g->from, PROT_READ | PROT_WRITE); // NOLINT: of the program
    *g = (struct guard){0};
    guards--;
}

/* --- the signal -------------------------------------------------------------------------------- */

/* Behind the instruction, as a return address is behind its call. NULL: not known on this processor. */
static const void *place_of(const ucontext_t *u)
{
#if defined(__x86_64__)
    return (const char *)u->uc_mcontext.gregs[REG_RIP] + 1; // NOLINT: it is only looked up
#elif defined(__aarch64__)
    return (const char *)u->uc_mcontext.pc + 1; // NOLINT: as above
#else
    (void)u;
    return NULL;
#endif
}

static enum guard_access access_of(const ucontext_t *u)
{
#if defined(__x86_64__)
    return u->uc_mcontext.gregs[REG_ERR] & 2 ? GUARD_WRITE : GUARD_READ;
#else
    (void)u;
    return GUARD_UNKNOWN;
#endif
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    if (info->si_code == SEGV_ACCERR && touched((uintptr_t)info->si_addr, access_of(context), place_of(context)))
        return; /* and it may now */
    pthread_mutex_lock(&program_lock);
    const struct sigaction own = program;
    pthread_mutex_unlock(&program_lock);
    if (own.sa_flags & SA_SIGINFO) {
        own.sa_sigaction(signal, info, context);
    } else if (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN) {
        own.sa_handler(signal);
    } else {
        const struct sigaction none = {.sa_handler = SIG_DFL};

        NEXT(sigaction, signal, &none, NULL); /* it happens again, and ends the process */
    }
}

void guard_start(bool (*fn)(uint64_t address, enum guard_access access, const void *where))
{
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    touched = fn;
    NEXT(sigaction, SIGSEGV, &action, &program);
}

bool guard_keep_handler(int signal, const struct sigaction *new, struct sigaction *old)
{
    if (signal != SIGSEGV || !touched)
        return false;
    pthread_mutex_lock(&program_lock);
    const struct sigaction before = program;
    if (new)
        program = *new;
    pthread_mutex_unlock(&program_lock);
    if (old)
        *old = before;
    return true;
}
