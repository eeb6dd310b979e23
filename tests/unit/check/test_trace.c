// SPDX-License-Identifier: BSD-2-Clause
/* Backtraces of the checker: equal calls have one, others have another, also if they come from the same place. */
#include "src/check/base/trace.h"

#include <criterion/criterion.h>
#include <pthread.h>

static const struct trace *last;

/* As a verb of the checker does it. */
static __attribute__((noinline)) const struct trace *verb(void)
{
    last = TRACE_HERE;
    return last;
}

static __attribute__((noinline)) const struct trace *post(void)
{
    const struct trace *t = verb();

    __asm__ volatile("" ::: "memory"); /* no tail call */
    return t;
}

static __attribute__((noinline)) const struct trace *send_first(void)
{
    const struct trace *t = post();

    __asm__ volatile("" ::: "memory");
    return t;
}

static __attribute__((noinline)) const struct trace *send_second(void)
{
    const struct trace *t = post();

    __asm__ volatile("nop" ::: "memory"); /* or the compiler makes it one with send_first */
    return t;
}

static __attribute__((noinline)) const struct trace *recurse(unsigned depth)
{
    const struct trace *t = depth ? recurse(depth - 1) : post();

    __asm__ volatile("" ::: "memory");
    return t;
}

Test(check_trace, callers_of_one_function_are_told_apart)
{
    const struct trace *first = NULL, *second = NULL;

    /* The stack pointer and the innermost return address are the same each time. */
    for (unsigned i = 0; i < 4; i++) {
        const struct trace *t = i % 2 ? send_second() : send_first();

        cr_assert(t && t->n >= 4, "%u calls", t ? t->n : 0);
        if (i % 2) {
            cr_assert(!second || second == t);
            second = t;
        } else {
            cr_assert(!first || first == t);
            first = t;
        }
    }
    cr_assert_neq(first, second);
    cr_assert_eq(first->at[0], second->at[0], "both by post");
    cr_assert_neq(first->at[1], second->at[1]);
    cr_assert_neq(first->id, second->id);
}

Test(check_trace, the_number_of_calls_is_bounded)
{
    const struct trace *deep = recurse(100);

    cr_assert_eq(deep->n, TRACE_DEPTH);
    cr_assert_eq(deep, recurse(100));
    cr_assert_eq(deep, recurse(90), "the outer calls are not in it");
    cr_assert_neq(deep, recurse(2));
}

static void *other_thread(void *arg)
{
    *(const struct trace **)arg = send_first();
    return NULL;
}

Test(check_trace, threads_share_them)
{
    const struct trace *t[2];
    pthread_t thread;

    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&thread, NULL, other_thread, &t[i]), 0);
        pthread_join(thread, NULL);
    }
    cr_assert_eq(t[0], t[1]);
}

Test(check_trace, an_address_that_is_not_on_the_stack_stands_alone)
{
    static const char nowhere[1];
    const struct trace *t = trace_of(nowhere, NULL);

    cr_assert_eq(t->n, 1);
    cr_assert_eq(t->at[0], (const void *)nowhere);
    cr_assert_eq(t, trace_of(nowhere, NULL));
}
