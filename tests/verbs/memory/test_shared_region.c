// SPDX-License-Identifier: BSD-2-Clause
/* Regions of memory that the program shares by a file: the daemon maps the file. The program maps other memory over each region after
 * its registration. A READ then returns the pages that the region had when it was registered, as from a NIC. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/verbs/daemon_status.h"
#include "tests/verbs/ends.h"

#define PAGE 4096u
#define LENGTH (VT_BUF < 8 * PAGE ? (uint32_t)VT_BUF : 8 * PAGE)

static struct vt_end a, b;
static char *area; /* of b */
static size_t area_size;

/* Maps the file, which is as long as the region, and writes 'o' to all bytes. */
static void map_file(int fd)
{
    need(fd >= 0 && ftruncate(fd, LENGTH) == 0);
    area = mmap(area, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | (area ? MAP_FIXED : 0), fd, 0);
    need(area != MAP_FAILED);
    area_size = LENGTH;
    memset(area, 'o', LENGTH);
}

static char byte_read(const struct ibv_mr *mr, uint32_t off, uint32_t len)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)area + off;
    wr.wr.rdma.rkey = mr->rkey;
    memset(a.buf, '-', LENGTH);
    need(vt_end_post(&a, &wr, 0, len) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS);
    for (uint32_t i = 1; i < len; i++)
        if (a.buf[i] != a.buf[0])
            return '?';
    return a.buf[0];
}

static struct ibv_mr *reg(void)
{
    struct ibv_mr *mr = ibv_reg_mr(b.pd, area, LENGTH, vt_access(b.ctx));
    need(mr);
    return mr;
}

/* Registers the area, maps other memory over it, and tells which pages a READ returns: 'o' the old ones, 'n' the new. */
static char pages_after_remap(void)
{
    struct ibv_mr *mr = reg();
    need(mmap(area, area_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
    memset(area, 'n', LENGTH);
    char c = byte_read(mr, 0, LENGTH);
    need(ibv_dereg_mr(mr) == 0);
    return c;
}

static int shm_file(char name[64])
{
    snprintf(name, 64, "/dev/shm/pumice-test-%d", (int)getpid());
    return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static void which_files(void)
{
    char name[64];
    int fd = memfd_create("region", MFD_CLOEXEC);
    map_file(fd);
    ok(pages_after_remap() == 'o', "a memfd");
    map_file(fd);
    close(fd);
    ok(pages_after_remap() == 'n', "a memfd whose descriptors are closed: the daemon can't map it");
    map_file(fd = shm_file(name));
    close(fd);
    ok(pages_after_remap() == 'o', "a file in /dev/shm that the program has closed");
    map_file(fd = open(name, O_RDWR | O_CLOEXEC));
    close(fd);
    need(unlink(name) == 0);
    ok(pages_after_remap() == 'n', "a closed file without a name: the daemon can't map it");
    fd = memfd_create("region", MFD_CLOEXEC);
    map_file(fd);
    need(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE) == 0);
    ok(pages_after_remap() == 'n', "a file with a page that does not exist yet: not mapped");
    close(fd);
    fd = memfd_create("region", MFD_CLOEXEC);
    map_file(fd);
    need(mmap(area, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == area);
    ok(pages_after_remap() == 'n', "a private mapping of a file: not mapped");
    close(fd);
}

/* Checks the report of `pumice status` about a region. A chosen device has no daemons of the test. */
static void is_reported(const struct ibv_mr *mr, bool mapped, const char *what)
{
    const char *socket = getenv(b.ctx == vt_ctx ? "PUMICE_SOCKET" : "VT_PEER_SOCKET");
    if (!vt_chosen())
        ok(vt_is_mapped(socket, mr) == mapped, what);
}

static void reports(void)
{
    int fd = memfd_create("region", MFD_CLOEXEC);
    map_file(fd);
    struct ibv_mr *mr = reg();
    is_reported(mr, true, "the status says that a memfd is mapped");
    is_reported(b.mr, false, "and that private memory is not");
    need(ftruncate(fd, 0) == 0);
    need(byte_read(mr, 0, 1) == 0);
    is_reported(mr, false, "and that a file without pages is not mapped any more");
    need(ibv_dereg_mr(mr) == 0);
    close(fd);
}

/* One page, because a machine has few of them. */
static void huge_pages(void)
{
    char *usual = area;
    struct stat st;
    int fd = memfd_create("region", MFD_CLOEXEC | MFD_HUGETLB);
    area = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && ftruncate(fd, st.st_blksize) == 0)
        area = mmap(NULL, area_size = (size_t)st.st_blksize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (area == MAP_FAILED) {
        printf("# skipped: a memfd of huge pages: no page is free (%s); see /proc/sys/vm/nr_hugepages\n",
               strerror(errno));
    } else {
        memset(area, 'o', LENGTH);
        struct ibv_mr *mr = reg();
        is_reported(mr, true, "the status says that a memfd of huge pages is mapped");
        need(ibv_dereg_mr(mr) == 0);
        ok(pages_after_remap() == 'o', "a memfd of huge pages");
        need(munmap(area, area_size) == 0);
    }
    if (fd >= 0)
        close(fd);
    area = usual;
    area_size = LENGTH;
}

/* Has another process a lock in its way? */
static bool is_locked(const char *name)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(name, O_RDWR);
        _exit(fd >= 0 && fcntl(fd, F_GETLK, &any) == 0 && any.l_type != F_UNLCK);
    }
    need(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void locks(void)
{
    char name[64];
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = shm_file(name);
    map_file(fd);
    int hidden = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    need(hidden >= 0 && fcntl(fd, F_SETLK, &all) == 0 && is_locked(name));
    struct ibv_mr *mr = reg();
    ok(is_locked(name), "registering keeps the program's POSIX locks of the file");
    need(ibv_dereg_mr(mr) == 0 && unlink(name) == 0);
    close(fd);
    close(hidden);
}

static void data(void)
{
    int fd = memfd_create("region", MFD_CLOEXEC);
    map_file(fd);
    struct ibv_mr *mr = reg();
    area[100] = 'x';
    ok(byte_read(mr, 100, 1) == 'x', "the program writes to the memory: a READ shows it");
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)area + 5000;
    wr.wr.rdma.rkey = mr->rkey;
    memset(a.buf, 'w', 3000);
    need(vt_end_post(&a, &wr, 0, 3000) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS);
    ok(area[5000] == 'w' && area[7999] == 'w' && area[8000] == 'o', "a WRITE reaches the memory");
    ok(byte_read(mr, 5000, 3000) == 'w', "and a READ shows that");

    struct ibv_sge sge = {.addr = (uintptr_t)area + 5000, .length = 3000, .lkey = mr->lkey};
    struct ibv_send_wr own = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;
    own.wr.rdma.remote_addr = (uintptr_t)a.buf;
    own.wr.rdma.rkey = a.mr->rkey;
    memset(a.buf, '-', 3001);
    need(ibv_post_send(b.qp, &own, &bad) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    ok(a.buf[0] == 'w' && a.buf[2999] == 'w' && a.buf[3000] == '-', "a WRITE from the memory");

    need(ftruncate(fd, 0) == 0);
    memset(a.buf, 'w', 64);
    own.sg_list->addr = (uintptr_t)area;
    need(ibv_post_send(b.qp, &own, &bad) == 0);
    ok(vt_next(b.scq).status == IBV_WC_LOC_PROT_ERR, "the file has no pages any more: an error of the program's own");
    need(ibv_dereg_mr(mr) == 0);
    close(fd);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    if (vt_own("which files the daemon maps") && vt_kernel_tells_mappings()) {
        which_files();
        reports();
        huge_pages();
    }
    locks();
    if (vt_own("files that become shorter"))
        data();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

static void off(void)
{
    char name[64];
    vt_end_open(&a, vt_ctx);
    vt_end_open(&b, vt_ctx);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    int fd = shm_file(name);
    map_file(fd);
    ok(pages_after_remap() == 'n', "PUMICE_MAP_SHARED=off: the daemon maps nothing");
    need(unlink(name) == 0);
    close(fd);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    int failed = vt_both(test);
    if (vt_chosen())
        return failed;
    setenv("PUMICE_MAP_SHARED", "off", 1);
    vt_part("off", off);
    return vt_failed;
}
