// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/handler.h"

#include <pthread.h>
#include <ucontext.h>

#include "src/check/base/next.h"

static struct taken {
    int signal;
    bool (*fn)(siginfo_t *info, void *context); /* NULL: it is not handled */
    struct sigaction program; /* the program's own action */
} all[] = {{.signal = SIGSEGV}, {.signal = SIGTRAP}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the program's actions */

#define TAKEN (sizeof(all) / sizeof(all[0]))

static struct taken *find(int signal)
{
    for (size_t i = 0; i < TAKEN; i++) {
        if (all[i].signal == signal && all[i].fn)
            return &all[i];
    }
    return NULL;
}

/* An access that is repeated when the handler returns. Other signals were sent, or came after an instruction. */
static bool happens_again(int signal, const siginfo_t *info)
{
    return signal == SIGSEGV && info->si_code > 0;
}

static void pass_on(int signal, siginfo_t *info, void *context)
{
    const struct taken *t = find(signal);

    pthread_mutex_lock(&lock);
    const struct sigaction own = t->program;
    pthread_mutex_unlock(&lock);
    if (own.sa_flags & SA_SIGINFO) {
        own.sa_sigaction(signal, info, context);
    } else if (own.sa_handler == SIG_IGN && !happens_again(signal, info)) {
        return;
    } else if (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN) {
        own.sa_handler(signal);
    } else {
        const struct sigaction none = {.sa_handler = SIG_DFL};

        NEXT(sigaction, signal, &none, NULL); /* the signal ends the process */
        if (!happens_again(signal, info))
            raise(signal);
    }
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    if (!find(signal)->fn(info, context))
        pass_on(signal, info, context);
}

void handler_take(int signal, bool (*fn)(siginfo_t *info, void *context))
{
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    for (size_t i = 0; i < TAKEN; i++) {
        if (all[i].signal != signal)
            continue;
        all[i].fn = fn;
        NEXT(sigaction, signal, &action, &all[i].program);
    }
}

const char *handler_instruction(const void *context)
{
#if defined(__x86_64__)
    return (const char *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]; // NOLINT: it is only looked up
#elif defined(__aarch64__)
    return (const char *)((const ucontext_t *)context)->uc_mcontext.pc; // NOLINT: as above
#else
    (void)context;
    return NULL;
#endif
}

bool handler_keep(int signal, const struct sigaction *new, struct sigaction *old)
{
    struct taken *t = find(signal);

    if (!t)
        return false;
    pthread_mutex_lock(&lock);
    const struct sigaction before = t->program;
    if (new)
        t->program = *new;
    pthread_mutex_unlock(&lock);
    if (old)
        *old = before;
    return true;
}

const sigset_t *handler_unblocked(int how, const sigset_t *set, sigset_t *without)
{
    if (!set || how == SIG_UNBLOCK)
        return set;
    *without = *set;
    for (size_t i = 0; i < TAKEN; i++) {
        if (all[i].fn)
            sigdelset(without, all[i].signal);
    }
    return without;
}
