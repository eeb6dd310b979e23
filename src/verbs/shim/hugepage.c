// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/hugepage.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"
#include "src/verbs/shim/crowd.h"
#include "src/verbs/shim/libc_next.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define MIB ((size_t)1 << 20)
#define HUGE_PAGE (2 * MIB)
/* With small pages of this size a huge page is HUGE_PAGE: x86-64, most systems of arm64 and riscv64. */
#define SMALL_PAGE 4096
/* If a region fills less of a huge page, the gain is not worth the memory of the rest. */
#define WORTH_IT (HUGE_PAGE / 4)
/* Longer regions stay as they are. Registering them would take too long, and would fill memory that is never used. */
#define LENGTH_MAX (256 * MIB)
/* Longer regions that the program has not written to yet stay as they are. */
#define UNTOUCHED_MAX (16 * MIB)

/* glibc raises its threshold by itself up to this: DEFAULT_MMAP_THRESHOLD_MAX of 64-bit systems. */
#define HEAP_BLOCK_MAX (32 * MIB)
/* The main heap grows by this much more than needed. So the last huge page of a block is mostly inside the heap. */
#define HEAP_PAD (2 * HUGE_PAGE)
/* The heap keeps one free block of that size, and returns more to the kernel. The heap of a thread, which has 64 MiB,
 * does the same. */
#define HEAP_TRIM (HEAP_BLOCK_MAX + HEAP_PAD)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool wanted; /* huge pages are wanted and possible; set once */
static bool always; /* on a crowded machine, too; set once */
static atomic_bool heap_is_tuned; /* the program has called mallopt for its heap */

static void find_whether_wanted(void)
{
    const char *v = getenv(PM_ENV_HUGE_PAGES);
    wanted = (!v || strcmp(v, "off") != 0) && sysconf(_SC_PAGESIZE) == SMALL_PAGE &&
             madvise(NULL, 0, MADV_COLLAPSE) == 0; /* the kernel knows the advice */
    always = v && strcmp(v, "on") == 0;
}

/* Makes one small page of the region present in each huge page, as if the program had written to it. The bytes stay.
 * Without this, the kernel skips a huge page that has no present page. */
static void touch_each(uintptr_t first, uintptr_t end, uintptr_t addr)
{
    for (uintptr_t p = first; p < end; p += HUGE_PAGE)
        madvise((void *)((p < addr ? addr : p) & ~(uintptr_t)(SMALL_PAGE - 1)), SMALL_PAGE, MADV_POPULATE_WRITE);
}

/* Makes huge pages of [first, end). After EAGAIN it tries again once: another process, such as the daemon while it
 * copies, holds a page for a moment. */
static void collapse(uintptr_t first, uintptr_t end)
{
    if (first < end && madvise((void *)first, end - first, MADV_COLLAPSE) != 0 && errno == EAGAIN)
        madvise((void *)first, end - first, MADV_COLLAPSE);
}

/* Makes the huge pages in [first, end) for a region at [begin, behind). The kernel stops at the first mapping where it
 * fails. So the huge pages at both ends, which may belong to other mappings in part, get calls of their own. */
static void collapse_all(uintptr_t first, uintptr_t end, uintptr_t begin, uintptr_t behind)
{
    uintptr_t inner = (begin + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), inner_end = behind & ~(HUGE_PAGE - 1);
    collapse(inner, inner_end);
    collapse(first, inner);
    collapse(inner < inner_end ? inner_end : inner, end);
}

void vb_hugepage_use(void *addr, size_t length, bool writable)
{
    int saved = errno;
    pthread_once(&once, find_whether_wanted);
    /* The advice waits until a thread of the kernel has run on each processor, and holds the lock of the process's
     * mappings meanwhile. That takes seconds while 64 ranks start on two processors. The daemon, which copies from and
     * to this memory, would wait for that lock, and end the program's session after memory-timeout. */
    if (wanted && length >= WORTH_IT && length <= LENGTH_MAX && (always || !vb_machine_is_crowded())) {
        uintptr_t begin = (uintptr_t)addr, behind = begin + length;
        /* The first byte of the first huge page of which the region fills WORTH_IT or more, and the first byte behind
         * the last such page. */
        uintptr_t first = (begin + WORTH_IT - 1) & ~(HUGE_PAGE - 1);
        uintptr_t end = (behind + HUGE_PAGE - WORTH_IT) & ~(HUGE_PAGE - 1);
        if (writable && length <= UNTOUCHED_MAX)
            touch_each(first, end, begin);
        collapse_all(first, end, begin, behind);
    }
    errno = saved;
}

static bool heap_parameter(int parameter)
{
    return parameter == M_MMAP_THRESHOLD || parameter == M_MMAP_MAX || parameter == M_TRIM_THRESHOLD ||
           parameter == M_TOP_PAD;
}

/* Replaces the function of the C library, to see what the program sets: the C library has no call that returns it. */
VB_EXPORT int mallopt(int parameter, int value)
{
    if (heap_parameter(parameter))
        atomic_store(&heap_is_tuned, true);
    return VB_NEXT(mallopt)(parameter, value);
}

static bool environment_tunes(void)
{
    static const char *const variables[] = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_",
                                            "MALLOC_TOP_PAD_"};
    static const char *const tunables[] = {"glibc.malloc.mmap_threshold", "glibc.malloc.mmap_max",
                                           "glibc.malloc.trim_threshold", "glibc.malloc.top_pad",
                                           "glibc.malloc.hugetlb"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (getenv(variables[i]))
            return true;
    const char *set = getenv("GLIBC_TUNABLES");
    for (size_t i = 0; set && i < sizeof(tunables) / sizeof(tunables[0]); i++)
        if (strstr(set, tunables[i]))
            return true;
    return false;
}

static void set_up_heap(void)
{
    if (!wanted || atomic_load(&heap_is_tuned) || environment_tunes())
        return;
    VB_NEXT(mallopt)(M_MMAP_THRESHOLD, HEAP_BLOCK_MAX);
    VB_NEXT(mallopt)(M_TRIM_THRESHOLD, HEAP_TRIM);
    VB_NEXT(mallopt)(M_TOP_PAD, HEAP_PAD);
}

void vb_hugepage_heap(void)
{
    static pthread_once_t heap_once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_whether_wanted);
    pthread_once(&heap_once, set_up_heap);
}
