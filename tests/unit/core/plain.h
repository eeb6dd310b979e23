// SPDX-License-Identifier: BSD-2-Clause
/* Criterion. Under ThreadSanitizer Criterion's sandbox can't start; then this header has the parts of it that
 * threaded tests need: one process, one test after the other, abort at the first failure. */
#ifndef PUMICE_TESTS_UNIT_CORE_PLAIN_H
#define PUMICE_TESTS_UNIT_CORE_PLAIN_H

#ifdef __SANITIZE_THREAD__

#include <stdio.h>
#include <stdlib.h>

struct plain_test {
    const char *name;
    void (*run)(void);
    struct plain_test *next;
};
extern struct plain_test *plain_tests;
struct plain_test *plain_tests;

#define Test(suite, test)                                                                                              \
    static void suite##_##test(void);                                                                                  \
    __attribute__((constructor)) static void suite##_##test##_add(void)                                                \
    {                                                                                                                  \
        static struct plain_test t = {#suite "::" #test, suite##_##test, NULL};                                        \
        t.next = plain_tests;                                                                                          \
        plain_tests = &t;                                                                                              \
    }                                                                                                                  \
    static void suite##_##test(void)

#define cr_assert(held, ...)                                                                                           \
    do {                                                                                                               \
        if (!(held)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #held);                                                 \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
#define cr_assert_not(held, ...) cr_assert(!(held))
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b))
#define cr_assert_null(p, ...) cr_assert((p) == NULL)

int main(void)
{
    for (struct plain_test *t = plain_tests; t; t = t->next) {
        printf("%s\n", t->name);
        t->run();
    }
    return 0;
}

#else
#include <criterion/criterion.h>
#endif
#endif
