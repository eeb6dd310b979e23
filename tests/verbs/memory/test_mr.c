// SPDX-License-Identifier: BSD-2-Clause
/* Regions whose addresses differ from those of their memory, and regions that are registered again while peers use
 * their keys. */
#include "tests/verbs/ends.h"

/* An address that this process has nothing at. Its offset in the page is that of the memory, as devices with page
 * tables need it. */
#define HIGH 0x123456789100u
#define HIGH_PAGE 0x123456789000u /* the beginning of that page */

static struct vt_end a, b;
static int all_access; /* all rights of a region of b's */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

/* Writes eight bytes to that address of the peer's; the status. */
static int write_to(uint64_t addr, uint32_t rkey, const char *what)
{
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {.remote_addr = addr, .rkey = rkey}};
    strncpy(a.buf, what, 8);
    need(vt_end_post(&a, &wr, 0, 8) == 0);
    return vt_next(a.scq).status;
}

static int refused(uint64_t addr, uint32_t rkey)
{
    int status = write_to(addr, rkey, "not here");
    connect_again();
    return status == IBV_WC_REM_ACCESS_ERR;
}

static void elsewhere(void)
{
    struct ibv_mr *mr = ibv_reg_mr_iova(b.pd, b.buf + 256, 512, HIGH, all_access);
    need(mr && mr->addr == b.buf + 256 && mr->length == 512);
    uint32_t key = mr->rkey;
    connect_again();
    ok(write_to(HIGH, mr->rkey, "iova 0 ") == IBV_WC_SUCCESS && !memcmp(b.buf + 256, "iova 0 ", 8),
       "the first address of a region with addresses of its own");
    ok(write_to(HIGH + 504, mr->rkey, "the end") == IBV_WC_SUCCESS && !memcmp(b.buf + 760, "the end", 8), "its last");
    ok(refused(HIGH + 505, mr->rkey) && refused(HIGH - 1, mr->rkey) && refused((uintptr_t)b.buf + 256, mr->rkey),
       "beyond, before, and the memory's own address: refused");
    struct ibv_sge own = {.addr = HIGH + 8, .length = 8, .lkey = mr->lkey};
    struct ibv_recv_wr rr = {.wr_id = 4, .sg_list = &own, .num_sge = 1}, *bad;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
    strcpy(a.buf, "inside");
    need(ibv_post_recv(b.qp, &rr, &bad) == 0 && vt_end_post(&a, &send, 0, 7) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 4 && !strcmp(b.buf + 264, "inside"),
       "a small message for a receive request with such an address");
    struct ibv_sge large = {.addr = HIGH + 64, .length = 300, .lkey = mr->lkey};
    rr.sg_list = &large;
    send.send_flags = IBV_SEND_SIGNALED;
    memset(a.buf, 'l', 300);
    need(ibv_post_recv(b.qp, &rr, &bad) == 0 && vt_end_post(&a, &send, 0, 300) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 4 && !memcmp(b.buf + 320, a.buf, 300),
       "and a larger one");
    need(ibv_dereg_mr(mr) == 0);
    ok(refused(HIGH, key), "deregistered: refused");
    if (vt_own("an address with another offset in its page")) {
        need((mr = ibv_reg_mr_iova(b.pd, b.buf + 256, 512, HIGH_PAGE, all_access)));
        ok(write_to(HIGH_PAGE + 504, mr->rkey, "offset ") == IBV_WC_SUCCESS && !memcmp(b.buf + 760, "offset ", 8),
           "an address with another offset in its page");
        need(ibv_dereg_mr(mr) == 0);
    }
}

static void zero_based(void)
{
    uint32_t at = vt_is_pumice() ? 1024 : 4096; /* other devices map whole pages */
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.buf + at, 64, all_access | IBV_ACCESS_ZERO_BASED);
    if (!mr && !vt_is_pumice()) {
        printf("# skipped: a zero-based region: IBV_ACCESS_ZERO_BASED is not supported (%s)\n", strerror(errno));
    } else {
        need(mr);
        ok(write_to(0, mr->rkey, "zero   ") == IBV_WC_SUCCESS && !memcmp(b.buf + at, "zero   ", 8),
           "a zero-based region's addresses are offsets");
        ok(refused((uintptr_t)b.buf + at, mr->rkey) && refused(57, mr->rkey), "and nothing else");
        need(ibv_dereg_mr(mr) == 0);
    }
    mr = NULL;
    if (vt_own("a region of no bytes")) {
        mr = ibv_reg_mr(b.pd, b.buf, 0, all_access);
        ok(mr && refused((uintptr_t)b.buf, mr->rkey), "a region of no bytes opens nothing");
    }
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {.remote_addr = 1, .rkey = 12345}};
    need(vt_end_post(&a, &wr, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "a WRITE of no bytes needs no key");
    need(!mr || ibv_dereg_mr(mr) == 0);
}

/* Each change counts for what comes after it, and the key stays. */
static void anew(void)
{
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.buf + 2048, 64, all_access);
    struct ibv_pd *other = ibv_alloc_pd(b.ctx);
    need(mr && other);
    uint32_t key = mr->rkey;
    uint64_t old = (uintptr_t)b.buf + 2048, new = (uintptr_t)b.buf + 4096;
    ok(write_to(old, key, "first  ") == IBV_WC_SUCCESS, "a region");
    int rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf + 4096, 64, 0);
    if (rc && vt_unsupported(errno) && !vt_is_pumice()) {
        printf("# skipped: regions that are registered again: ibv_rereg_mr is not supported (%s)\n", strerror(errno));
        need(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(other) == 0);
        return;
    }
    ok(rc == 0 && mr->rkey == key, "it gets another place");
    ok(refused(old, key) && write_to(new, key, "moved  ") == IBV_WC_SUCCESS && !memcmp(b.buf + 4096, "moved  ", 8) &&
           !memcmp(b.buf + 2048, "first  ", 8),
       "the key leads there, and not to the old one");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) ==
               0 &&
           refused(new, key),
       "without REMOTE_WRITE it is refused");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, other, NULL, 0, all_access) == 0 &&
           refused(new, key),
       "so is it in another protection domain");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0) == 0 &&
           write_to(new, key, "back   ") == IBV_WC_SUCCESS && !memcmp(b.buf + 4096, "back   ", 8),
       "back in its own, all is as it was");
    ok(ibv_dereg_mr(mr) == 0 && refused(new, key), "deregistered: refused");
    need(ibv_dealloc_pd(other) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    all_access = vt_access(cb);
    elsewhere();
    zero_based();
    anew();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
