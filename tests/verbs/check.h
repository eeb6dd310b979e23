// SPDX-License-Identifier: BSD-2-Clause
/* Checks. Each prints one line: "ok - WHAT" or "not ok - WHAT (line, errno)". */
#ifndef PUMICE_TESTS_VERBS_CHECK_H
#define PUMICE_TESTS_VERBS_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int vt_failed;

static inline bool vt_ok(bool held, const char *what, int line)
{
    printf("%s - %s", held ? "ok" : "not ok", what);
    if (!held)
        printf(" (line %d, errno %s)", line, strerror(errno));
    printf("\n");
    fflush(stdout);
    vt_failed |= !held;
    return held;
}
#define ok(held, what) vt_ok((held), (what), __LINE__)

/* For conditions that must hold before anything can be tested. If one does not hold, the part of the program ends
 * (vt_part), or the program. */
#define need(held)                                                                                                     \
    do {                                                                                                               \
        if (!(held)) {                                                                                                 \
            printf("not ok - %s (line %d, errno %s)\n", #held, __LINE__, strerror(errno));                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline double vt_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
