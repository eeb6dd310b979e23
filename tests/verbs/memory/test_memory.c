// SPDX-License-Identifier: BSD-2-Clause
/* Unusual memory: on-demand and implicit regions and their prefetch, device memory, zero-based regions, and parent
 * domains with allocators of their own. */
#include <sys/mman.h>

#include "src/verbs/base/verbs_v65.h"
#include "tests/verbs/ends.h"

static void implicit(struct vt_pair *p)
{
    struct ibv_wc wc;
    struct ibv_mr *mr = ibv_reg_mr(p->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    char stack[64] = "from the stack";
    struct ibv_sge s = {.addr = (uintptr_t)stack, .length = 15, .lkey = mr ? mr->lkey : 0};
    struct ibv_send_wr swr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *sbad;
    need(mr && vt_recv(p, 1, 1, 8192, 64) == 0 && ibv_post_send(p->qp[0], &swr, &sbad) == 0);
    ok(vt_poll(p->rcq, 1, &wc) == 1 && vt_poll(p->scq, 1, &wc) == 1 && !strcmp(p->buf + 8192, stack),
       "an implicit region is all memory");
    ok(!ibv_reg_mr(p->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), "which needs ON_DEMAND");
    need(ibv_dereg_mr(mr) == 0);
}

static void on_demand(void)
{
    struct ibv_device_attr_ex d;
    struct vt_pair p = {0};
    struct ibv_wc wc;
    vt_needs(vt_ctx, VT_ON_DEMAND);
    need(ibv_query_device_ex(vt_ctx, NULL, &d) == 0);
    const uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                         IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV | VB_ODP_SUPPORT_FLUSH |
                         VB_ODP_SUPPORT_ATOMIC_WRITE;
    ok_pumice((d.odp_caps.general_caps & (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT)) ==
                      (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT) &&
                  (d.odp_caps.per_transport_caps.rc_odp_caps & all) == all,
              "on-demand paging, also implicit, for all of RC");
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    /* Registered before there is memory. */
    char *hole = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(hole != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, hole, 1 << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ok(mr != NULL, "a range without memory is registered on demand");
    need(mr && mprotect(hole, 1 << 20, PROT_READ | PROT_WRITE) == 0);
    struct ibv_sge s = {.addr = (uintptr_t)hole + 4096, .length = 3000, .lkey = mr->lkey};
    struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_recv(p.qp[1], &rwr, &bad) == 0);
    memset(p.buf, 'x', 3000);
    need(vt_send(&p, 0, 2, 0, 3000, IBV_SEND_SIGNALED) == 0 && vt_poll(p.rcq, 1, &wc) == 1);
    ok(wc.status == IBV_WC_SUCCESS && !memcmp(hole + 4096, p.buf, 3000), "and receives, once there is some");
    need(vt_poll(p.scq, 1, &wc) == 1);

    unsigned char present[2];
    s.addr = (uintptr_t)hole + (512 << 10), s.length = 100;
    ok(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &s, 1) == 0 &&
           mincore(hole + (512 << 10), 4096, present) == 0 && (present[0] & 1),
       "prefetching makes pages present");
    s.addr = (uintptr_t)hole + (1 << 20) - 50;
    ok(vt_fails(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &s, 1), EFAULT), "beyond the region: EFAULT");
    s.addr = (uintptr_t)hole, s.lkey = mr->lkey ^ 1;
    ok(vt_fails(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &s, 1), ENOENT),
       "a key that is not there: ENOENT");
    s.lkey = mr->lkey;
    ok(vt_fails(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 8, &s, 1), EINVAL) &&
           vt_fails(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &s, 0), EINVAL) &&
           vt_fails(ibv_advise_mr(p.pd, (enum ibv_advise_mr_advice)77, 0, &s, 1), EOPNOTSUPP),
       "unknown flags, no range, unknown advice");
    struct ibv_sge plain = vt_sge(&p, 0, 100);
    ok(vt_fails(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &plain, 1), EINVAL),
       "not an on-demand region: EINVAL");
    need(ibv_dereg_mr(mr) == 0);

    if (d.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT)
        implicit(&p);
    else
        printf("# skipped: an implicit region: IBV_ODP_SUPPORT_IMPLICIT is not in odp_caps.general_caps\n");
    need(munmap(hole, 1 << 20) == 0);
    need(vt_pair_end(&p));
}

static void device_memory(void)
{
    struct ibv_device_attr_ex d;
    struct vt_pair p = {0};
    struct ibv_wc wc;
    vt_needs(vt_ctx, VT_DEVICE_MEMORY);
    need(ibv_query_device_ex(vt_ctx, NULL, &d) == 0);
    ok_pumice(d.max_dm_size >= 65536, "the device has 64 KiB of memory");
    struct ibv_alloc_dm_attr a = {.length = d.max_dm_size + 1};
    ok(vt_none(ibv_alloc_dm(vt_ctx, &a), ENOMEM), "more than it has: ENOMEM");
    a.length = 0;
    ok(vt_none(ibv_alloc_dm(vt_ctx, &a), EINVAL), "none: EINVAL");
    a.length = d.max_dm_size;
    struct ibv_dm *dm = ibv_alloc_dm(vt_ctx, &a), *none;
    a.length = 4;
    none = ibv_alloc_dm(vt_ctx, &a);
    ok_pumice(dm && !none && errno == ENOMEM, "all of it is all");
    need((!dm || ibv_free_dm(dm) == 0) && (!none || ibv_free_dm(none) == 0));
    a.length = 4096;
    need((dm = ibv_alloc_dm(vt_ctx, &a)));
    char text[16] = "device memory!", back[16];
    ok(ibv_memcpy_to_dm(dm, 256, text, 16) == 0 && ibv_memcpy_from_dm(back, dm, 256, 16) == 0 &&
           !memcmp(text, back, 16),
       "copies to it and from it");
    ok(vt_fails(ibv_memcpy_to_dm(dm, 2, text, 4), EINVAL) && vt_fails(ibv_memcpy_to_dm(dm, 4, text, 3), EINVAL) &&
           vt_fails(ibv_memcpy_from_dm(back, dm, 4092, 8), EINVAL) &&
           vt_fails(ibv_memcpy_from_dm(back, dm, 8192, 4), EINVAL),
       "of whole words, inside: else EINVAL");
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    ok(vt_none(ibv_reg_dm_mr(p.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE), EINVAL),
       "a region that is not zero based: EINVAL");
    const unsigned access =
        IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    ok(vt_none(ibv_reg_dm_mr(p.pd, dm, 4000, 100, access), EINVAL), "beyond its end: EINVAL");
    struct ibv_mr *mr = ibv_reg_dm_mr(p.pd, dm, 256, 64, access);
    ok(mr && vt_fails(ibv_free_dm(dm), EBUSY), "a region of it keeps it");
    struct ibv_sge s = vt_sge(&p, 0, 14);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = 0, .rkey = mr->rkey}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && vt_poll(p.scq, 1, &wc) == 1);
    ok(wc.status == IBV_WC_SUCCESS && !memcmp(p.buf, text, 14), "a peer READs it");
    wr.opcode = IBV_WR_RDMA_WRITE, wr.wr.rdma.remote_addr = 16;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && vt_poll(p.scq, 1, &wc) == 1);
    ok(wc.status == IBV_WC_SUCCESS && ibv_memcpy_from_dm(back, dm, 272, 16) == 0 && !memcmp(back, text, 14),
       "and writes to it");
    ok(ibv_dereg_mr(mr) == 0 && ibv_free_dm(dm) == 0, "it goes");
    need(vt_pair_end(&p));
}

struct arena {
    unsigned given, returned, left;
};
static void *arena_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
    struct arena *a = context;
    (void)pd, (void)type;
    if (a->left == 0)
        return IBV_ALLOCATOR_USE_DEFAULT;
    if (a->left == 1)
        return NULL;
    a->given++;
    return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}
static void arena_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
    struct arena *a = context;
    (void)pd, (void)type;
    a->returned++;
    free(ptr);
}

static void allocators(void)
{
    if (!vt_own("objects that use the allocator of a parent domain"))
        return;
    struct arena arena = {.left = 2};
    struct ibv_pd *pd = ibv_alloc_pd(vt_ctx);
    struct ibv_parent_domain_init_attr attr = {.pd = pd,
                                               .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                                            IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                                               .alloc = arena_alloc,
                                               .free = arena_free,
                                               .pd_context = &arena};
    struct vt_pair p = {0};
    need((p.pd = ibv_alloc_parent_domain(vt_ctx, &attr)));
    struct ibv_srq_init_attr sa = {.attr = {.max_wr = 16, .max_sge = 1}};
    need((p.srq = ibv_create_srq(p.pd, &sa)));
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    ok(arena.given == 3 && arena.returned == 0, "a parent domain's allocator gives memory for QPs and SRQs");
    struct ibv_wc wc;
    need(vt_srq_recv(&p, p.srq, 1, 0, 64) == 0 && vt_send(&p, 0, 0, 64, 8, 0) == 0 && vt_poll(p.rcq, 1, &wc) == 1);
    ok(wc.status == IBV_WC_SUCCESS, "and they work");
    arena.left = 1;
    errno = 0;
    ok(vt_none(ibv_create_srq(p.pd, &sa), ENOMEM), "what it doesn't give is not there: ENOMEM");
    arena.left = 0;
    struct ibv_srq *usual = ibv_create_srq(p.pd, &sa);
    ok(usual && ibv_destroy_srq(usual) == 0 && arena.returned == 0, "it may leave it to the library");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
    ok(vt_fails(ibv_dealloc_pd(p.pd), EBUSY) && vt_fails(ibv_dealloc_pd(pd), EBUSY),
       "it is busy while objects have its memory");
    need(ibv_destroy_srq(p.srq) == 0 && ibv_dereg_mr(p.mr) == 0);
    ok(arena.returned == 3, "which it gets back");
    ok(ibv_dealloc_pd(p.pd) == 0 && ibv_dealloc_pd(pd) == 0, "both go");
    attr.alloc = NULL;
    pd = attr.pd = ibv_alloc_pd(vt_ctx);
    ok(vt_none(ibv_alloc_parent_domain(vt_ctx, &attr), EINVAL), "an allocator without function: EINVAL");
    need(ibv_dealloc_pd(pd) == 0 && ibv_destroy_cq(p.scq) == 0 && ibv_destroy_cq(p.rcq) == 0);
    free(p.buf);
}

int main(void)
{
    vt_part("on-demand paging", on_demand);
    vt_part("device memory", device_memory);
    vt_part("allocators of a parent domain", allocators);
    return vt_failed;
}
