// SPDX-License-Identifier: BSD-2-Clause
#include "hugepage.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pumice/abi.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define MIB ((size_t)1 << 20)
#define HUGE_PAGE (2 * MIB)
/* A region that fills less of a huge page isn't worth the memory of the rest. */
#define WORTH_IT (HUGE_PAGE / 4)
/* Longer regions stay as they are: registering must not take long, nor fill memory that is never used. */
#define LENGTH_MAX (256 * MIB)

/* What glibc's thresholds grow to by themselves: DEFAULT_MMAP_THRESHOLD_MAX of 64-bit systems, and twice that. */
#define HEAP_BLOCK_MAX (32 * MIB)
#define HEAP_TRIM (2 * HEAP_BLOCK_MAX)
/* So much the heap grows beyond what is asked for: the last huge page of a block then mostly is all in the heap. */
#define HEAP_PAD (2 * HUGE_PAGE)

static bool wanted(void)
{
    const char *v = getenv(PM_ENV_HUGE_PAGES);
    return !v || strcmp(v, "off") != 0;
}

/* The kernel passes over a huge page of which nothing was written yet, so one small page of the region becomes as if it were in
 * each. Its bytes stay. */
static void begin_each(uintptr_t first, uintptr_t end, uintptr_t addr)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uintptr_t p = first; p < end; p += HUGE_PAGE)
        madvise((void *)((p < addr ? addr : p) & ~(page - 1)), page, MADV_POPULATE_WRITE);
}

void vb_hugepage_use(void *addr, size_t length, bool writable)
{
    if (length < WORTH_IT || length > LENGTH_MAX || !wanted())
        return;
    /* The first byte of a page of which the region fills WORTH_IT or more, and the first one behind the last such page. */
    uintptr_t begin = (uintptr_t)addr, first = (begin + WORTH_IT - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = (begin + length + HUGE_PAGE - WORTH_IT) & ~(HUGE_PAGE - 1);
    int saved = errno;
    if (first < end) {
        if (writable)
            begin_each(first, end, begin);
        /* What isn't all of one mapping it passes over, too. */
        madvise((void *)first, end - first, MADV_COLLAPSE);
    }
    errno = saved;
}

static bool malloc_is_tuned(void)
{
    static const char *const names[] = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_",
                                        "MALLOC_TOP_PAD_"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]))
            return true;
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables && strstr(tunables, "glibc.malloc.");
}

static void set_up_heap(void)
{
    if (!wanted() || malloc_is_tuned())
        return;
    mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_MAX);
    mallopt(M_TRIM_THRESHOLD, HEAP_TRIM);
    mallopt(M_TOP_PAD, HEAP_PAD);
}

void vb_hugepage_heap(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up_heap);
}
