// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>
#include <uthash.h>

#include "src/check/base/inside.h"

#define REMEMBERED 64u /* backtraces of a thread; a power of two */
#define NEAR 65536u /* bytes of the stack, in which the remembered words must be */

struct kept {
    struct trace trace;
    UT_hash_handle hh;
};
static struct kept *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct walk {
    const void *caller;
    bool behind; /* the interrupted instruction is the one behind the access, as a return address is behind its call */
    bool inside; /* the caller was met */
    unsigned n;
    const void *at[TRACE_DEPTH];
    const void *const *slot[TRACE_DEPTH]; /* where on the stack the address is; NULL: not found */
    const void *const *below; /* the stack pointer of the frame before */
};

static __thread struct remembered {
    const void *frame;
    const struct trace *trace; /* NULL: nothing */
    const void *const *slot[TRACE_DEPTH]; /* of at[1] and further ones */
} remembered[REMEMBERED] __attribute__((tls_model("initial-exec")));

/* --- unwinding --------------------------------------------------------------------------------- */

/* The word between two stack pointers that holds the address. A call puts it at the upper end, or the callee at the lower. */
static const void *const *find_slot(const void *address, const void *const *from, const void *const *to)
{
    if (!from || from >= to || (size_t)((const char *)to - (const char *)from) > NEAR)
        return NULL;
    for (const void *const *slot = to - 1; slot >= from; slot--) {
        if (*slot == address)
            return slot;
    }
    return NULL;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    int is_before = 0; /* in a frame that a signal interrupted: the address is not behind a call */
    uintptr_t address = _Unwind_GetIPInfo(context, &is_before);
    const void *ip = (const void *)(address + (address && is_before && !w->behind)); // NOLINT: it is only looked up
    const void *const *sp = (const void *const *)_Unwind_GetCFA(context); // NOLINT: a place of this thread's stack

    if (!w->inside && ip == w->caller)
        w->inside = true;
    if (w->inside) {
        w->slot[w->n] = find_slot(ip, w->below, sp);
        w->at[w->n++] = ip;
    }
    w->below = sp;
    return !ip || w->n == TRACE_DEPTH ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* --- keeping ----------------------------------------------------------------------------------- */

static const struct trace *keep(const struct walk *w)
{
    struct trace t = {.n = w->n};
    struct kept *k;

    memcpy(t.at, w->at, w->n * sizeof(t.at[0]));
    inside_enter(); /* the table frees memory when it grows */
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, all, t.at, sizeof(t.at), k);
    if (!k && (k = calloc(1, sizeof(*k)))) {
        k->trace = t;
        k->trace.id = HASH_COUNT(all) + 1;
        HASH_ADD(hh, all, trace.at, sizeof(t.at), k);
    }
    pthread_mutex_unlock(&lock);
    inside_leave();
    return k ? &k->trace : NULL;
}

/* Without all of its words, a backtrace is not remembered. */
static void remember(struct remembered *r, const void *frame, const struct trace *t, const struct walk *w)
{
    for (unsigned i = 1; i < w->n; i++) {
        if (!w->slot[i] || (const char *)w->slot[i] - (const char *)frame > (ptrdiff_t)NEAR)
            return;
    }
    r->frame = frame;
    r->trace = t;
    memcpy(r->slot, w->slot, sizeof(r->slot));
}

static bool is_same(const struct remembered *r, const void *caller, const void *frame)
{
    if (r->frame != frame || !r->trace || r->trace->at[0] != caller)
        return false;
    for (unsigned i = 1; i < r->trace->n; i++) {
        if (*r->slot[i] != r->trace->at[i])
            return false;
    }
    return true;
}

static struct remembered *entry(const void *caller, const void *frame)
{
    uintptr_t hash = (uintptr_t)caller ^ ((uintptr_t)frame >> 4);

    return &remembered[(hash ^ (hash >> 6)) % REMEMBERED];
}

static void unwind(struct walk *w)
{
    _Unwind_Backtrace(step, w);
    while (w->n > 1 && !w->at[w->n - 1])
        w->n--;
    if (w->n == 0) /* it can't be unwound */
        w->at[w->n++] = w->caller;
}

const struct trace *trace_of(const void *caller, const void *frame)
{
    struct remembered *r = entry(caller, frame);
    struct walk w = {.caller = caller};

    if (frame && is_same(r, caller, frame))
        return r->trace;
    unwind(&w);
    const struct trace *t = keep(&w);
    if (frame && t)
        remember(r, frame, t, &w);
    return t;
}

/* Places are return addresses, so that of an instruction is one byte further. */
const struct trace *trace_at(const void *instruction)
{
    struct walk w = {.caller = instruction ? (const char *)instruction + 1 : NULL};

    unwind(&w);
    return keep(&w);
}

const struct trace *trace_behind(const void *instruction)
{
    struct walk w = {.caller = instruction, .behind = true};

    unwind(&w);
    return keep(&w);
}

void trace_forked(void)
{
    pthread_mutex_init(&lock, NULL);
}
