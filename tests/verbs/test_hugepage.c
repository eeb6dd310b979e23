// SPDX-License-Identifier: BSD-2-Clause
/* Registered memory gets into huge pages, with that of its neighbours and without a change to their bytes; PUMICE_HUGE_PAGES=off
 * leaves it alone; and malloc's blocks of 1 MiB are in its heap once a device is open, unless the environment says otherwise. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "vt.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define MIB ((size_t)1 << 20)
#define HUGE (2 * MIB)
#define SIZE (6 * HUGE)

static struct ibv_pd *pd;
static char *area; /* SIZE bytes, aligned to a huge page, between pages that nobody may touch */

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

/* Maps the area anew; touched: with a different byte in each page. */
static void renew(bool touched)
{
    static char *whole;
    if (!whole)
        whole = mmap(NULL, SIZE + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(whole != MAP_FAILED);
    area = (char *)(((uintptr_t)whole + HUGE) & ~(HUGE - 1));
    need(mmap(area, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
    for (size_t i = 0; touched && i < SIZE; i += 4096)
        area[i] = (char)(i / 4096 % 251 + 1);
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
    renew(true);
    need(mprotect(area + MIB + MIB / 2, 4096, PROT_READ) == 0); /* two mappings now, and the page is in both */
    ok(after(0, MIB, 0) <= 0 && intact(), "a huge page of two mappings: none");
    renew(true);
    struct ibv_mr *mr = ibv_reg_mr(pd, area, 4096, IBV_ACCESS_LOCAL_WRITE);
    need(mr && huge_kib(area, NULL) == 0);
    need(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, area + HUGE, HUGE, 0) == 0);
    ok(huge_kib(area, NULL) == 2048 && intact(), "registered anew for other memory: that is");
    need(ibv_dereg_mr(mr) == 0);
}

/* In a process of its own, with one more variable in its environment: is malloc's block in the heap, and memory left alone? */
static bool child_finds(const char *variable, bool in_heap, bool huge)
{
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        char *args[] = {"/proc/self/exe", in_heap ? "heap" : "mapping", huge ? "huge" : "small", NULL};
        if (variable)
            putenv(strdup(variable));
        execv("/proc/self/exe", args);
        _exit(126);
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int look(const char *where, const char *pages)
{
    bool heap = false;
    pd = ibv_alloc_pd(vt_open());
    need(pd);
    char *block = malloc(MIB);
    need(block);
    memset(block, 1, MIB);
    need(huge_kib(block, &heap) >= 0);
    renew(true);
    bool huge = after(0, HUGE, 0) == 2048;
    return heap == !strcmp(where, "heap") && huge == !strcmp(pages, "huge") ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return look(argv[1], argv[2]);
    renew(true);
    if (madvise(area, HUGE, MADV_COLLAPSE) != 0 || huge_kib(area, NULL) != 2048) {
        printf("skip - this kernel makes no huge pages of small ones\n");
        return 77;
    }
    pd = ibv_alloc_pd(vt_open());
    need(pd);
    regions();
#ifndef __SANITIZE_ADDRESS__ /* which has a malloc of its own */
    ok(child_finds(NULL, true, true), "by default malloc's block of 1 MiB is in the heap");
    ok(child_finds("PUMICE_HUGE_PAGES=off", false, false), "off: it is not, and memory stays in small pages");
    ok(child_finds("PUMICE_HUGE_PAGES=on", true, true), "on: as by default");
    ok(child_finds("MALLOC_TOP_PAD_=0", false, true), "a variable of malloc's is set: its limits stay");
    ok(child_finds("GLIBC_TUNABLES=glibc.malloc.arena_max=4", false, true), "or one of its tunables");
#endif
    return vt_failed;
}
