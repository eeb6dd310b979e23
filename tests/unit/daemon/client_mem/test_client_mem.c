// SPDX-License-Identifier: BSD-2-Clause
/* Client memory (daemon/client_mem/client_mem.h, mem_backend.h): both ways to the memory of a process, tried on the
 * test's own process. Scattering, gathering, merging, failures in the middle, and refused accesses. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/client_mem/mem_backend.h"

static uint64_t probe = 0xfeedfacecafebeefull;
static struct mem_backend m;
static struct client_mem s;
static char *area; /* four pages, of which the third is not mapped */
#define PAGE 4096

static int self_mem(void)
{
    return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

static void start(enum memory_mode mode)
{
    area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(area + 2 * PAGE, PAGE);
    cr_assert_eq(mem_backend_init(&m, NULL), 0);
    client_mem_init(&s, 0, getpid(), (struct client_fds){self_mem(), -1}, true, mode, (uintptr_t)&probe, probe);
    cr_assert_eq(mem_backend_add(&m, &s), 0);
}

static void finish(void)
{
    mem_backend_remove(&m, &s);
    client_mem_fini(&s);
    mem_backend_fini(&m);
    munmap(area, 4 * PAGE);
}

static struct mem_segment at(size_t off, uint32_t len)
{
    return (struct mem_segment){(uintptr_t)area + off, len, s.number};
}

static enum memory_mode modes[] = {MEMORY_PROCESS_VM, MEMORY_PROC_MEM};
#define BOTH_WAYS(name)                                                                                                \
    ParameterizedTestParameters(space, name)                                                                           \
    {                                                                                                                  \
        return cr_make_param_array(enum memory_mode, modes, 2);                                                        \
    }                                                                                                                  \
    ParameterizedTest(enum memory_mode *mode, space, name)

Test(space, probing_selects_the_first_way_that_works)
{
    uint64_t local = probe;

    client_mem_init(&s, 0, getpid(), (struct client_fds){self_mem(), -1}, true, MEMORY_AUTO, (uintptr_t)&probe, probe);
    cr_assert_eq(s.path, PM_MEMORY_PROCESS_VM);
    client_mem_fini(&s);
    client_mem_init(&s, 0, getpid(), (struct client_fds){self_mem(), -1}, false, MEMORY_AUTO, (uintptr_t)&probe, probe);
    cr_assert_eq(s.path, PM_MEMORY_PROC_MEM, "another user's process is not written by its number");
    client_mem_fini(&s);
    client_mem_init(&s, 0, 0, (struct client_fds){self_mem(), -1}, true, MEMORY_AUTO, (uintptr_t)&probe, probe);
    cr_assert_eq(s.path, PM_MEMORY_PROC_MEM, "a process of another PID namespace");
    client_mem_fini(&s);
    client_mem_init(&s, 0, getpid(), (struct client_fds){-1, -1}, true, MEMORY_PROC_MEM, (uintptr_t)&probe, probe);
    cr_assert_eq(s.path, PM_MEMORY_NONE);
    client_mem_fini(&s);
    client_mem_init(&s, 0, getpid(), (struct client_fds){self_mem(), -1}, true, MEMORY_AUTO, (uintptr_t)&probe,
                    probe + 1);
    cr_assert_eq(s.path, PM_MEMORY_NONE, "not the process that sent the value");
    client_mem_fini(&s);
    client_mem_init(&s, 0, getpid(), (struct client_fds){self_mem(), -1}, true, MEMORY_AUTO, 8, probe);
    cr_assert_eq(s.path, PM_MEMORY_NONE);
    client_mem_fini(&s);
    cr_assert_eq(probe, local);
}

Test(space, other_files_are_not_memory)
{
    char name[] = "/tmp/pumice-test-mem-XXXXXX";
    int fd = mkstemp(name);

    cr_assert_eq(pwrite(fd, &probe, sizeof(probe), 64), (ssize_t)sizeof(probe));
    client_mem_init(&s, 0, 0, (struct client_fds){fd, -1}, true, MEMORY_AUTO, 64, probe);
    cr_assert_eq(s.path, PM_MEMORY_NONE, "a plain file with the value at the right place");
    client_mem_fini(&s);
    unlink(name);
    client_mem_init(&s, 0, 0, (struct client_fds){open("/proc/self/maps", O_RDONLY), -1}, true, MEMORY_AUTO, 0, probe);
    cr_assert_eq(s.path, PM_MEMORY_NONE);
    client_mem_fini(&s);
}

BOTH_WAYS(scatter_and_gather_at_different_cuts)
{
    uint8_t src[1000], dst[1000];
    struct mem_segment out[4], in[3];
    struct buf bufs[] = {{dst, 300}, {dst + 300, 0}, {dst + 300, 650}, {dst + 950, 50}};

    start(*mode);
    out[0] = at(0, 1), out[1] = at(100, 499), out[2] = at(1000, 0), out[3] = at(3 * PAGE, 500);
    in[0] = out[0], in[1] = out[1], in[2] = out[3];
    for (unsigned i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)(i * 7 + 1);
    cr_assert_eq(mem_backend_ops.write(&m, 17, out, 4, src, sizeof(src)), 0);
    cr_assert_eq(area[100], 0, "deferred");
    cr_assert_eq(mem_backend_ops.read(&m, in, 3, bufs, 4), 0, "sees the write before it");
    cr_assert_arr_eq(dst, src, sizeof(src));
    cr_assert_eq((uint8_t)area[100], src[1]);
    finish();
}

BOTH_WAYS(more_pieces_than_a_call_takes)
{
    enum { N = 3 * CLIENT_MEM_IOVS + 5 };
    static uint8_t src[N], dst[N];
    static struct mem_segment p[N];
    static struct buf bufs[N];

    start(*mode);
    for (unsigned i = 0; i < N; i++) {
        src[i] = (uint8_t)(i ^ i >> 8);
        p[i] = at(2 * i, 1);
        bufs[i] = (struct buf){dst + i, 1};
    }
    cr_assert_eq(mem_backend_ops.write(&m, 17, p, N, src, N), 0);
    mem_backend_flush(&m);
    cr_assert_eq(mem_backend_ops.read(&m, p, N, bufs, N), 0);
    cr_assert_arr_eq(dst, src, N);
    finish();
}

/* Only the bytes of a page that is not there are dropped. */
BOTH_WAYS(unmapped_memory_hits_its_own_queue_pair)
{
    static uint8_t src[4 * PAGE];
    struct mem_segment p;
    struct mem_fault fault;

    start(*mode);
    memset(src, 0x5a, sizeof(src));
    p = at(0, 100);
    cr_assert_eq(mem_backend_ops.write(&m, 1, &p, 1, src, 100), 0);
    p = at(2 * PAGE - 50, 100); /* reaches into the hole */
    cr_assert_eq(mem_backend_ops.write(&m, 2, &p, 1, src, 100), 0);
    p = at(3 * PAGE, 100);
    cr_assert_eq(mem_backend_ops.write(&m, 3, &p, 1, src, 100), 0);
    p = at(2 * PAGE + 8, 8);
    cr_assert_eq(mem_backend_ops.write(&m, 4, &p, 1, src, 8), 0);
    p = at(3 * PAGE + 100, 100); /* not adjacent to memory that is still mapped */
    cr_assert_eq(mem_backend_ops.write(&m, 5, &p, 1, src, 100), 0);
    mem_backend_flush(&m);
    cr_assert_eq(area[99], 0x5a);
    cr_assert_eq(area[3 * PAGE + 99], 0x5a, "what came behind the failure is there");
    cr_assert_eq(area[3 * PAGE + 199], 0x5a);
    cr_assert_eq(area[2 * PAGE - 1], 0x5a, "the part of the write that has memory");
    cr_assert(mem_backend_pop_fault(&m, &fault));
    cr_assert(fault.qpn == 4 && fault.unmapped && fault.n == 1);
    cr_assert(mem_backend_pop_fault(&m, &fault));
    cr_assert(fault.qpn == 2 && fault.unmapped && fault.n == 1);
    cr_assert_not(mem_backend_pop_fault(&m, &fault));
    finish();
}

BOTH_WAYS(what_is_not_mapped_reads_as_zeros)
{
    static uint8_t src[4 * PAGE], dst[4 * PAGE];
    struct mem_segment p;
    struct buf to = {dst, sizeof(dst)};
    struct mem_fault fault;
    uint64_t old = 1;

    start(*mode);
    memset(src, 0x5a, sizeof(src));
    memset(dst, 0xee, sizeof(dst));
    p = at(0, 4 * PAGE);
    cr_assert_eq(mem_backend_ops.write(&m, 2, &p, 1, src, sizeof(src)), 0);
    cr_assert_eq(mem_backend_ops.read(&m, &p, 1, &to, 1), MEM_UNMAPPED);
    for (unsigned i = 0; i < sizeof(dst); i++)
        cr_assert_eq(dst[i], i / PAGE == 2 ? 0 : 0x5a, "byte %u", i);
    cr_assert(mem_backend_pop_fault(&m, &fault) && fault.unmapped);
    p = at(2 * PAGE, 8);
    cr_assert_eq(mem_backend_ops.atomic(&m, &p, MEM_FETCH_ADD, 5, 0, &old), MEM_UNMAPPED);
    cr_assert_eq(old, 0);
    p = at(0, 8);
    cr_assert_eq(mem_backend_ops.atomic(&m, &p, MEM_FETCH_ADD, 5, 0, &old), 0, "it goes on");
    finish();
}

/* A region for on-demand paging has no pinned pages. */
BOTH_WAYS(on_demand_memory_that_is_not_there)
{
    uint8_t bytes[16] = {0};
    struct mem_segment p;
    struct buf to = {bytes, 8};
    struct mem_fault fault;
    uint64_t old;

    start(*mode);
    p = at(2 * PAGE, 8);
    p.space |= CLIENT_MEM_ON_DEMAND;
    cr_assert_eq(mem_backend_ops.read(&m, &p, 1, &to, 1), -1);
    cr_assert_eq(mem_backend_ops.atomic(&m, &p, MEM_FETCH_ADD, 5, 0, &old), -1);
    cr_assert_eq(mem_backend_ops.write(&m, 6, &p, 1, bytes, 8), 0);
    mem_backend_flush(&m);
    cr_assert(mem_backend_pop_fault(&m, &fault));
    cr_assert(fault.qpn == 6 && !fault.unmapped);
    p = at(8, 8);
    p.space |= CLIENT_MEM_ON_DEMAND;
    cr_assert_eq(mem_backend_ops.read(&m, &p, 1, &to, 1), 0);
    finish();
}

/* The memory of a process that ended is another matter: its queue pairs end, too. */
BOTH_WAYS(a_process_that_is_gone)
{
    uint8_t bytes[16] = {0};
    char name[64];
    struct mem_segment p;
    struct buf to = {bytes, 8};
    struct mem_fault fault;
    pid_t child;

    start(*mode);
    client_mem_fini(&s);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    snprintf(name, sizeof(name), "/proc/%d/mem", (int)child);
    mem_backend_remove(&m, &s);
    client_mem_init(&s, 0, child, (struct client_fds){open(name, O_RDWR | O_CLOEXEC), -1}, true, *mode,
                    (uintptr_t)&probe, probe);
    cr_assert_neq(s.path, PM_MEMORY_NONE);
    cr_assert_eq(mem_backend_add(&m, &s), 0);
    p = at(0, 8);
    cr_assert_eq(mem_backend_ops.read(&m, &p, 1, &to, 1), 0);
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    cr_assert_eq(mem_backend_ops.read(&m, &p, 1, &to, 1), -1);
    cr_assert_eq(mem_backend_ops.write(&m, 6, &p, 1, bytes, 8), 0);
    mem_backend_flush(&m);
    cr_assert(mem_backend_pop_fault(&m, &fault));
    cr_assert(fault.qpn == 6 && !fault.unmapped);
    finish();
}

BOTH_WAYS(order_of_overlapping_writes)
{
    uint8_t a[64], b[64];
    struct mem_segment p;

    start(*mode);
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    p = at(0, 64);
    mem_backend_ops.write(&m, 1, &p, 1, a, 64);
    p = at(32, 64);
    mem_backend_ops.write(&m, 2, &p, 1, b, 64);
    p = at(0, 8);
    mem_backend_ops.write(&m, 1, &p, 1, b, 8);
    mem_backend_flush(&m);
    cr_assert(area[0] == 'b' && area[8] == 'a' && area[31] == 'a' && area[32] == 'b' && area[95] == 'b');
    finish();
}

BOTH_WAYS(unreadable_memory)
{
    uint8_t dst[64];
    struct buf buf = {dst, sizeof(dst)};
    struct mem_segment p;

    start(*mode);
    p = at(2 * PAGE, 64);
    cr_assert_neq(mem_backend_ops.read(&m, &p, 1, &buf, 1), 0);
    p = at(2 * PAGE - 32, 64);
    cr_assert_neq(mem_backend_ops.read(&m, &p, 1, &buf, 1), 0, "half of it");
    p.space = 4095;
    cr_assert_neq(mem_backend_ops.read(&m, &p, 1, &buf, 1), 0, "nobody's space");
    p.space = UINT32_MAX;
    cr_assert_neq(mem_backend_ops.write(&m, 1, &p, 1, dst, 8), 0);
    finish();
}

BOTH_WAYS(atomics)
{
    uint64_t old, *word;
    struct mem_segment p;

    start(*mode);
    word = (uint64_t *)area;
    *word = 40;
    p = at(0, 8);
    cr_assert_eq(mem_backend_ops.atomic(&m, &p, MEM_FETCH_ADD, 2, 0, &old), 0);
    cr_assert(old == 40 && *word == 42);
    cr_assert_eq(mem_backend_ops.atomic(&m, &p, MEM_CMP_SWAP, 41, 7, &old), 0);
    cr_assert(old == 42 && *word == 42, "compared unequal");
    cr_assert_eq(mem_backend_ops.atomic(&m, &p, MEM_CMP_SWAP, 42, 7, &old), 0);
    cr_assert(old == 42 && *word == 7);
    p = at(2 * PAGE, 8);
    cr_assert_neq(mem_backend_ops.atomic(&m, &p, MEM_FETCH_ADD, 2, 0, &old), 0);
    finish();
}

Test(space, adjacent_writes_are_merged)
{
    static uint8_t src[4][4112];

    start(MEMORY_PROCESS_VM);
    for (unsigned i = 0; i < 4; i++)
        cr_assert(client_mem_defer(&s, 1, 0x10000 + i * 4096, src[i] + 16, 4096));
    cr_assert_eq(s.nremote, 1);
    cr_assert_eq(s.nlocal, 4);
    cr_assert_eq(s.remote[0].iov_len, 4 * 4096);
    s.nlocal = s.nremote = 0;
    s.waiting_bytes = 0;
    finish();
}

/* process_vm_readv and process_vm_writev obey page protections. /proc/self/mem ignores them, so the keys are checked
 * before. */
Test(space, read_only_memory)
{
    uint8_t src[8] = {1};
    struct mem_segment p;
    struct mem_fault fault;

    start(MEMORY_PROCESS_VM);
    mprotect(area, PAGE, PROT_READ);
    p = at(0, 8);
    cr_assert_eq(mem_backend_ops.write(&m, 9, &p, 1, src, 8), 0);
    mem_backend_flush(&m);
    cr_assert(mem_backend_pop_fault(&m, &fault));
    cr_assert_eq(fault.qpn, 9);
    finish();
}
