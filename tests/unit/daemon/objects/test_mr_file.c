// SPDX-License-Identifier: BSD-2-Clause
/* Regions whose file the daemon maps (daemon/objects/mr_file.h). Other memory is mapped over each region after its
 * registration: so the bytes that the daemon reads show whether it reads from its own mapping. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/objects/mr.h"
#include "daemon/objects/mr_file.h"
#include "daemon/session/segment_guard.h"
#include "tests/unit/daemon/daemon_fixture.h"

#define PAGE 4096u
#define PAGES 8u
#define SIZE (PAGES * PAGE)

static struct fixture f;
static struct session *s;
static uint32_t pd;
static int file;
static uint8_t *area; /* SIZE bytes of the file; byte i of page p: 16 + p */

static int new_file(void)
{
    int fd = memfd_create("region", MFD_CLOEXEC);
    uint8_t page[PAGE];

    for (unsigned i = 0; i < PAGES; i++) {
        memset(page, 16 + (int)i, sizeof(page));
        cr_assert_eq(write(fd, page, sizeof(page)), sizeof(page));
    }
    return fd;
}

static void start(void)
{
    segment_guard_install();
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    file = new_file();
    area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    cr_assert_neq(area, MAP_FAILED);
}

static void finish(void)
{
    fixture_end(&f);
    munmap(area, SIZE);
    close(file);
}

TestSuite(mr_file, .init = start, .fini = finish);

/* The request for `length` bytes at area + at, which are at file_offset of the file fd. */
static struct pm_reg_mr_req request(size_t at, size_t length, uint64_t file_offset, int fd)
{
    struct stat st;

    cr_assert_eq(fstat(fd, &st), 0);
    return (struct pm_reg_mr_req){.pd = pd,
                                  .access = ACCESS_LOCAL_WRITE,
                                  .va = (uintptr_t)area + at,
                                  .length = length,
                                  .iova = (uintptr_t)area + at,
                                  .file_offset = file_offset,
                                  .file_dev = st.st_dev,
                                  .file_ino = st.st_ino};
}

static struct mr *reg(const struct pm_reg_mr_req *rq, int fd)
{
    struct pm_handle h = {0};

    cr_assert_eq(fixture_call_fd(&f, s, PM_OP_REG_MR, rq, sizeof(*rq), fd, &h, sizeof(h)), 0, "%s",
                 (char *)f.rp.payload);
    return handles_get(&s->mrs, h.handle);
}

static int dereg(const struct mr *mr)
{
    struct pm_handle h = {mr->key};

    return fixture_call(&f, s, PM_OP_DEREG_MR, &h, sizeof(h), NULL, 0);
}

/* Puts other memory in place of the area. */
static void cover(void)
{
    cr_assert_eq(mmap(area, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), area);
    memset(area, 99, SIZE);
}

/* Reads `len` bytes at offset off of the region as the engine does, and returns the result of the read. */
static int get(const struct mr *mr, size_t off, uint32_t len, uint8_t *to)
{
    struct mem_segment seg = {.va = mr->va + off, .len = len, .space = s->client_mem->number | mr_file_space(mr->file)};
    struct buf parts[2] = {{to, len / 3}, {to + len / 3, len - len / 3}};

    return mem_backend_ops.read(&f.device->memory, &seg, 1, parts, 2);
}

static bool reads(const struct mr *mr, size_t off, uint32_t len, uint8_t value)
{
    uint8_t bytes[PAGE];

    memset(bytes, 0, sizeof(bytes));
    if (get(mr, off, len, bytes) != 0)
        return false;
    for (uint32_t i = 0; i < len; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

Test(mr_file, a_mapped_region_keeps_its_pages)
{
    struct pm_reg_mr_req rq = request(0, SIZE, 0, file);
    struct mr *mr = reg(&rq, file);

    cover();
    cr_expect(mr_file_in_use(mr->file));
    cr_expect(reads(mr, 0, PAGE, 16));
    cr_expect(reads(mr, 7 * PAGE + 1, PAGE - 1, 23));
    cr_expect_eq(pwrite(file, "\x07\x07\x07", 3, 2 * PAGE + 5), 3);
    cr_expect(reads(mr, 2 * PAGE + 5, 3, 7), "it shows what the program writes to the file");
    cr_expect_eq(dereg(mr), 0);
    cr_expect_eq(f.device->memory.shared.n, 0);
}

Test(mr_file, a_region_may_begin_anywhere_in_the_file)
{
    struct pm_reg_mr_req rq = request(100, 2 * PAGE, 3 * PAGE + 100, file);
    struct mr *mr = reg(&rq, file);

    cover();
    cr_expect(mr_file_in_use(mr->file));
    cr_expect(reads(mr, 0, 1000, 19));
    cr_expect(reads(mr, 2 * PAGE - 100, 100, 21));
    cr_expect_eq(dereg(mr), 0);
}

Test(mr_file, a_region_without_a_file_is_read_from_the_program)
{
    struct pm_reg_mr_req rq = request(0, SIZE, 0, file);
    struct mr *mr = reg(&rq, -1);

    cr_expect_null(mr->file);
    cr_expect(reads(mr, PAGE, PAGE, 17));
    cover();
    cr_expect(reads(mr, PAGE, PAGE, 99));
    cr_expect_eq(dereg(mr), 0);
}

/* Registers with this file, and expects that the daemon does not map it. */
static void refuse(struct pm_reg_mr_req rq, int fd, const char *what)
{
    struct mr *mr = reg(&rq, fd);

    cr_expect_null(mr->file, "%s", what);
    cr_expect(reads(mr, 0, 100, 16), "%s", what);
    cr_expect_eq(dereg(mr), 0);
    cr_expect_eq(f.device->memory.shared.n, 0);
}

Test(mr_file, files_that_do_not_fit_are_not_mapped)
{
    struct pm_reg_mr_req rq = request(0, SIZE, 0, file);
    int other = new_file(), pipes[2], disk = open("/proc/self/exe", O_RDONLY);

    cr_assert_eq(pipe(pipes), 0);
    refuse(rq, other, "another file");
    refuse(request(0, SIZE, 0, disk), disk, "a file on a disk");
    refuse(request(0, SIZE, 0, pipes[0]), pipes[0], "a pipe");
    rq.file_offset = PAGE;
    refuse(rq, file, "the file ends before the region");
    rq.file_offset = UINT64_MAX - PAGE + 1;
    refuse(rq, file, "an offset that wraps");
    rq.file_offset = UINT64_MAX - 5;
    refuse(rq, file, "an odd offset that wraps");
    rq.file_offset = 0;
    rq.access |= IBV_ACCESS_ON_DEMAND;
    refuse(rq, file, "on demand");
    rq.access &= ~(uint32_t)IBV_ACCESS_ON_DEMAND;
    f.device->memory.shared.n = SHARED_REGIONS_MAX;
    struct mr *mr = reg(&rq, file);
    cr_expect_null(mr->file, "too many");
    f.device->memory.shared.n = 0;
    s->client_mem->path = PM_MEMORY_PROC_MEM; /* a program of another user */
    int mem = s->client_mem->fds.mem = open("/proc/self/mem", O_RDWR);
    cr_assert_geq(mem, 0);
    refuse(rq, file, "the memory of another user's program");
    close(other);
    close(disk);
    close(pipes[0]);
    close(pipes[1]);
}

Test(mr_file, a_file_that_becomes_shorter_does_no_harm)
{
    struct pm_reg_mr_req rq = request(0, SIZE, 0, file);
    struct mr *mr = reg(&rq, file);
    uint8_t bytes[PAGE];

    cr_assert_eq(ftruncate(file, 2 * PAGE), 0);
    cr_expect(reads(mr, PAGE, PAGE, 17));
    cr_expect(mr_file_in_use(mr->file));
    cr_expect_eq(get(mr, 4 * PAGE, 100, bytes), MEM_UNMAPPED);
    cr_expect_not(mr_file_in_use(mr->file));
    cr_expect(reads(mr, 0, PAGE, 16), "the rest is read from the program");
    cr_expect_not(s->memory_lost, "the session goes on");
    cr_assert_eq(ftruncate(file, SIZE), 0);
    cr_expect(reads(mr, 4 * PAGE, PAGE, 0));
    cr_expect_eq(dereg(mr), 0);
}

Test(mr_file, a_changed_region_has_other_pages)
{
    struct pm_reg_mr_req rq = request(0, SIZE, 0, file);
    struct mr *mr = reg(&rq, file);
    struct pm_rereg_mr_req again = {.key = mr->key, .mr = rq};
    int other = new_file();

    again.mr.access |= ACCESS_REMOTE_READ;
    cr_assert_eq(fixture_call(&f, s, PM_OP_REREG_MR, &again, sizeof(again), NULL, 0), 0);
    cr_expect(mr_file_in_use(mr->file), "other rights: the pages stay");
    again.mr = request(0, SIZE / 2, 2 * PAGE, other);
    cr_assert_eq(fixture_call_fd(&f, s, PM_OP_REREG_MR, &again, sizeof(again), other, NULL, 0), 0);
    cover();
    cr_expect(reads(mr, 0, PAGE, 18));
    again.mr.pd = pd + 1;
    cr_expect_eq(fixture_call_fd(&f, s, PM_OP_REREG_MR, &again, sizeof(again), file, NULL, 0), -EINVAL);
    cr_expect(reads(mr, 0, PAGE, 18), "an invalid request changes nothing");
    cr_expect_eq(f.device->memory.shared.n, 1);
    again.mr = request(0, SIZE, 0, file);
    cr_assert_eq(fixture_call(&f, s, PM_OP_REREG_MR, &again, sizeof(again), NULL, 0), 0);
    cr_expect_null(mr->file);
    cr_expect(reads(mr, 0, PAGE, 99));
    cr_expect_eq(f.device->memory.shared.n, 0);
    close(other);
}

Test(mr_file, the_end_of_a_session_unmaps_its_regions)
{
    struct pm_reg_mr_req rq = request(0, SIZE, 0, file);

    reg(&rq, file);
    reg(&rq, file);
    cr_expect_eq(f.device->memory.shared.n, 2);
    session_close_all(f.device);
    cr_expect_eq(f.device->memory.shared.n, 0);
}
