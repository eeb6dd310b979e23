// SPDX-License-Identifier: BSD-2-Clause
/* Free memory is given back although pieces of it are still in use. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/sanitizer.h"
#include "daemon/threads/memory_trim.h"
#include "tests/unit/skip.h"

enum { PIECES = 60000, PIECE = 1024 };

static long resident_kb(void)
{
    char line[128];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && kb < 0 && fgets(line, sizeof(line), f))
        sscanf(line, "RssAnon: %ld", &kb);
    if (f)
        fclose(f);
    return kb;
}

/* Uses 60 MB in small pieces. The last piece stays, so free alone can't give the others back. */
static void *use_memory(void)
{
    static void *piece[PIECES];

    for (unsigned i = 0; i < PIECES; i++) {
        piece[i] = malloc(PIECE);
        cr_assert_not_null(piece[i]);
        memset(piece[i], 1, PIECE);
    }
    for (unsigned i = 0; i < PIECES - 1; i++)
        free(piece[i]);
    return piece[PIECES - 1];
}

static bool comes_below(long kb)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (resident_kb() < kb)
            return true;
        usleep(10000);
    }
    return false;
}

Test(memory_trim, free_memory_is_given_back, .timeout = 60)
{
    long before = resident_kb();

    if (SANITIZED)
        SKIP_TEST("memory that is given back", "a sanitizer has its own malloc");
    for (unsigned i = 0; i < 2; i++) { /* the second time too */
        void *last = use_memory();

        cr_assert_gt(resident_kb(), before + 40000);
        memory_trim_later();
        memory_trim_later();
        cr_expect(comes_below(before + 20000), "%ld KiB instead of %ld", resident_kb(), before);
        free(last);
    }
}
