// SPDX-License-Identifier: BSD-2-Clause
/* Registered memory moves into huge pages, together with its neighbours, and no byte changes. PUMICE_HUGE_PAGES=off
 * leaves it alone, and it stays as it is on a crowded machine. malloc takes blocks of 1 MiB from its heap once a device is
 * open, unless the program or its environment has set this. */
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/verbs/vt.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define MIB ((size_t)1 << 20)
#define HUGE (2 * MIB)
#define SIZE (10 * HUGE)

static struct ibv_pd *pd;
static char *area; /* SIZE bytes, aligned to a huge page, between inaccessible pages */

/* KiB of the mapping that holds p which are in huge pages; -1: there is none. heap: whether it is malloc's heap. */
static long huge_kib(const void *p, bool *heap)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    need(f);
    char line[512];
    unsigned long from, to;
    long kib = -1, n;
    bool here = false;
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            here = (uintptr_t)p >= from && (uintptr_t)p < to;
            if (here && heap)
                *heap = strstr(line, "[heap]") != NULL;
        } else if (here && sscanf(line, "AnonHugePages: %ld", &n) == 1)
            kib = n;
    }
    fclose(f);
    return kib;
}

/* Maps the area again. touched: writes a different byte to each page. Turns transparent huge pages off meanwhile, in
 * case the system uses them by default. */
static void renew(bool touched)
{
    static char *whole;
    if (!whole)
        whole = mmap(NULL, SIZE + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(whole != MAP_FAILED && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    area = (char *)(((uintptr_t)whole + HUGE) & ~(HUGE - 1));
    need(mmap(area, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
    for (size_t i = 0; touched && i < SIZE; i += 4096)
        area[i] = (char)(i / 4096 % 251 + 1);
    need(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) == 0);
}

static bool intact(void)
{
    for (size_t i = 0; i < SIZE; i += 4096)
        if (area[i] != (char)(i / 4096 % 251 + 1) || area[i + 1] != 0)
            return false;
    return true;
}

/* KiB in huge pages after registration of that part of the area. */
static long after(size_t at, size_t length, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(pd, area + at, length, access);
    need(mr);
    long kib = huge_kib(area, NULL);
    need(ibv_dereg_mr(mr) == 0);
    return kib;
}

static void regions(void)
{
    renew(true);
    ok(after(HUGE / 2, MIB, IBV_ACCESS_LOCAL_WRITE) == 2048 && intact(), "1 MiB within a huge page: all of that page");
    renew(true);
    ok(after(HUGE / 2 + MIB / 2, MIB, 0) == 4096 && intact(), "1 MiB half and half: both pages");
    renew(true);
    ok(after(HUGE - 4096, MIB, 0) == 2048 && intact(), "a page of the first and most of the second: the second");
    renew(true);
    ok(after(64, MIB / 2, 0) == 2048 && after(2 * HUGE, MIB / 2 - 1, 0) == 2048 && intact(),
       "512 KiB: a huge page; a byte less: none");
    renew(true);
    ok(after(MIB, MIB + HUGE + MIB / 4, 0) == 4096 && intact(), "a half, a whole and an eighth: the first two");
    renew(true);
    ok(after(0, SIZE, IBV_ACCESS_ON_DEMAND) == 0, "on demand: none");
    renew(false);
    ok(after(0, 2 * HUGE, IBV_ACCESS_LOCAL_WRITE) == 4096 && area[0] == 0 && area[2 * HUGE - 1] == 0,
       "memory that was never touched: huge, and zero");
    renew(false);
    ok(after(0, 2 * HUGE, 0) == 0, "the same for a region that is only read: not");
    renew(false);
    area[0] = 1;
    ok(after(0, 9 * HUGE, IBV_ACCESS_LOCAL_WRITE) <= 2048, "more than 16 MiB of it: stays empty");
    renew(true);
    struct ibv_mr *mr = ibv_reg_mr(pd, area, 4096, IBV_ACCESS_LOCAL_WRITE);
    need(mr && huge_kib(area, NULL) == 0);
    need(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, area + HUGE, HUGE, 0) == 0);
    ok(huge_kib(area, NULL) == 2048 && intact(), "registered anew for other memory: that is");
    need(ibv_dereg_mr(mr) == 0);
}

/* Neighbours that are other mappings. */
static void neighbours(void)
{
    renew(true);
    need(mprotect(area + MIB + MIB / 2, 4096, PROT_READ) == 0);
    ok(after(0, MIB, 0) == 0 && after(0, HUGE + MIB / 4, 0) <= 0 && intact(),
       "a huge page of more than one mapping: stays small");
    renew(true);
    need(mprotect(area, 4096, PROT_READ) == 0 && mprotect(area + 4 * HUGE - 4096, 4096, PROT_READ) == 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, area + 4096, 4 * HUGE - 8192, 0);
    need(mr);
    ok(huge_kib(area + HUGE, NULL) == 4096 && intact(),
       "such pages at both ends of a region: those between them are huge");
    need(ibv_dereg_mr(mr) == 0);
    renew(true);
    errno = ERANGE;
    mr = ibv_reg_mr(pd, area, HUGE, 0);
    ok(mr && errno == ERANGE, "errno stays");
    need(ibv_dereg_mr(mr) == 0);
}

/* The heap of which the blocks are: huge pages for all that are filled to a quarter, the last one included. */
static bool blocks_huge(void)
{
    enum { BLOCKS = 5 };
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        need((block[i] = malloc(MIB)));
        memset(block[i], i, MIB);
        need(ibv_reg_mr(pd, block[i], MIB, IBV_ACCESS_LOCAL_WRITE));
    }
    uintptr_t begin = ((uintptr_t)block[0] + HUGE - 1) & ~(HUGE - 1), end = (uintptr_t)block[BLOCKS - 1] + MIB;
    long pages = (long)((end + HUGE - HUGE / 4 - begin) / HUGE);
    for (int i = 0; i < BLOCKS; i++)
        for (size_t j = 0; j < MIB; j += MIB - 1)
            need(block[i][j] == i);
    return huge_kib(block[2], NULL) >= pages * 2048;
}

/* Waits until more threads than `limit` are runnable, or no more than that. False: not within 20 s. */
static bool wait_for_crowd(unsigned limit, bool more)
{
    for (int i = 0; i < 2000; i++) {
        unsigned runnable = 0;
        FILE *f = fopen("/proc/loadavg", "r");
        need(f && fscanf(f, "%*s %*s %*s %u/", &runnable) == 1);
        fclose(f);
        if ((runnable > limit) == more)
            return true;
        usleep(10000);
    }
    return false;
}

/* More threads compute than the library accepts: it leaves the memory alone. When they have ended, it does not, unless
 * other programs keep the machine crowded. */
static bool small_in_a_crowd(void)
{
    enum { COMPUTING_MAX = 4096 };
    static pid_t computing[COMPUTING_MAX];
    unsigned limit = 4 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN), n = limit + 4;
    need(n <= COMPUTING_MAX);
    for (unsigned i = 0; i < n; i++) {
        computing[i] = fork();
        need(computing[i] >= 0);
        if (computing[i] == 0)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (computing[i] == 0)
            ;
    }
    need(wait_for_crowd(limit, true));
    renew(true);
    bool small = after(0, HUGE, 0) == 0;
    for (unsigned i = 0; i < n; i++)
        need(kill(computing[i], SIGKILL) == 0 && waitpid(computing[i], NULL, 0) == computing[i]);
    /* Other tests may start programs at any moment. */
    bool huge = false, calm = true;
    for (int i = 0; i < 20 && !huge && calm; i++) {
        calm = wait_for_crowd(limit / 2, false);
        renew(true);
        huge = after(0, HUGE, 0) == 2048;
    }
    return small && (huge || !calm);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which have a malloc of their own */
#define GLIBC_MALLOC
/* In a process of its own, with one more variable in its environment: is malloc's block in the heap, and what becomes of
 * registered memory? pages: "huge", "small", or "crowd" (small only while the machine is crowded). */
static bool child_finds(const char *variable, bool in_heap, const char *pages)
{
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        char *args[] = {"/proc/self/exe", in_heap ? "heap" : "mapping", (char *)pages, NULL};
        if (variable)
            putenv(strdup(variable));
        execv("/proc/self/exe", args);
        _exit(126);
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif

static int look(const char *where, const char *pages)
{
    bool heap = false;
    if (getenv("OWN_LIMIT"))
        mallopt(M_TRIM_THRESHOLD, 1 << 20);
    pd = ibv_alloc_pd(vt_open());
    need(pd);
    char *block = malloc(MIB);
    need(block);
    memset(block, 1, MIB);
    need(huge_kib(block, &heap) >= 0);
    if (!strcmp(pages, "crowd"))
        return heap == !strcmp(where, "heap") && small_in_a_crowd() ? 0 : 1;
    renew(true);
    bool huge = after(0, HUGE, 0) == 2048;
    if (heap && !blocks_huge())
        return 1;
    return heap == !strcmp(where, "heap") && huge == !strcmp(pages, "huge") ? 0 : 1;
}

int main(int argc, char **argv)
{
    VT_OWN("huge pages of the client library");
    if (argc == 3)
        return look(argv[1], argv[2]);
    static const char *const ours[] = {"PUMICE_HUGE_PAGES", "GLIBC_TUNABLES",         "MALLOC_TOP_PAD_",
                                       "MALLOC_MMAP_MAX_",  "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        unsetenv(ours[i]);
    setenv("PUMICE_HUGE_PAGES", "on", 1); /* other tests may run at the same time */
    renew(true);
    if (madvise(area, 5 * HUGE, MADV_COLLAPSE) != 0 || huge_kib(area, NULL) != 5 * 2048) {
        printf("skip - this kernel makes no huge pages of small ones\n");
        return 77;
    }
    pd = ibv_alloc_pd(vt_open());
    need(pd);
    regions();
    neighbours();
#ifdef GLIBC_MALLOC
    ok(child_finds("PUMICE_HUGE_PAGES=", true, "crowd"),
       "by default malloc's block of 1 MiB is in the heap, and memory stays in small pages on a crowded machine only");
    ok(child_finds("PUMICE_HUGE_PAGES=off", false, "small"), "off: it is not, and memory stays in small pages");
    ok(child_finds(NULL, true, "huge"), "on: as by default, whether the machine is crowded or not");
    ok(child_finds("MALLOC_TOP_PAD_=0", false, "huge"), "a variable of malloc's is set: its limits stay");
    ok(child_finds("GLIBC_TUNABLES=glibc.malloc.top_pad=4096", false, "huge"), "or one of its tunables");
    ok(child_finds("GLIBC_TUNABLES=glibc.malloc.arena_max=4", true, "huge"), "one that has nothing to do with it");
    ok(child_finds("OWN_LIMIT=1", false, "huge"), "the program itself has set one: they stay");
#endif
    return vt_failed;
}
