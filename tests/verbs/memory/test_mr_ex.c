// SPDX-License-Identifier: BSD-2-Clause
/* ibv_reg_mr_ex, buffers of the library, the speed of a port, and calls that fail by design, as programs call them that
 * were built with a later rdma-core. */
#include <stdint.h>

#include "src/verbs/base/api.h"
#include "tests/verbs/later.h"
#include "tests/verbs/vt.h"

static struct vt_pair p;

static struct ibv_mr *reg(struct vb_mr_attr_v65 attr)
{
    if (!attr.access)
        attr.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    return ibv_reg_mr_ex(p.pd, (struct ibv_mr_init_attr *)(void *)&attr);
}

/* Does a WRITE of 16 bytes to this address of the region arrive at `at`? */
static bool reached(const struct ibv_mr *mr, uint64_t addr, const char *at)
{
    struct ibv_sge s = vt_sge(&p, 0, 16);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_wc wc;
    static char value = 'a';
    memset(p.buf, ++value, 16);
    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = mr->rkey;
    return ibv_post_send(p.qp[0], &wr, &bad) == 0 && vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
           at[0] == value && at[15] == value;
}

static void regions(void)
{
    static char memory[8192];
    struct ibv_mr *mr = reg((struct vb_mr_attr_v65){.length = 4096, .mask = VB_REG_MR_ADDR, .addr = memory});
    ok(mr && mr->addr == memory && mr->length == 4096 && mr->pd == p.pd, "by address");
    ok(mr && reached(mr, (uintptr_t)memory + 100, memory + 100), "and its address is its iova");
    ok(mr && ibv_dereg_mr(mr) == 0, "deregistered");
    mr = reg((struct vb_mr_attr_v65){
        .length = 4096, .mask = VB_REG_MR_ADDR | VB_REG_MR_IOVA, .addr = memory, .iova = 0x10000});
    ok(mr && reached(mr, 0x10000 + 200, memory + 200), "with an iova");
    ok(mr && ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 4096, 4096, 0) == 0 &&
           reached(mr, (uintptr_t)memory + 4096, memory + 4096) && ibv_dereg_mr(mr) == 0,
       "and it can be moved");
    mr = reg((struct vb_mr_attr_v65){.length = 4096,
                                     .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED,
                                     .mask = VB_REG_MR_ADDR,
                                     .addr = memory});
    ok(mr && reached(mr, 48, memory + 48) && ibv_dereg_mr(mr) == 0, "zero based");
}

static bool refuses(struct vb_mr_attr_v65 attr, int error)
{
    attr.length = 64;
    return !reg(attr) && errno == error;
}

static void refused(void)
{
    ok(refuses((struct vb_mr_attr_v65){.mask = 0}, EINVAL), "neither address nor file: EINVAL");
    ok(refuses((struct vb_mr_attr_v65){.mask = VB_REG_MR_ADDR | VB_REG_MR_FD | VB_REG_MR_FD_OFFSET, .addr = p.buf},
               EINVAL),
       "both: EINVAL");
    ok(refuses((struct vb_mr_attr_v65){.mask = VB_REG_MR_FD | VB_REG_MR_IOVA}, EINVAL), "a file, no offset: EINVAL");
    ok(refuses((struct vb_mr_attr_v65){.mask = VB_REG_MR_FD | VB_REG_MR_FD_OFFSET | VB_REG_MR_IOVA}, EOPNOTSUPP),
       "a dma-buf: EOPNOTSUPP");
    ok(refuses((struct vb_mr_attr_v65){.mask = VB_REG_MR_ADDR | VB_REG_MR_DMAH, .addr = p.buf}, EOPNOTSUPP),
       "a DMA handle: EOPNOTSUPP");
    ok(refuses((struct vb_mr_attr_v65){.mask = VB_REG_MR_ADDR | 64, .addr = p.buf}, EOPNOTSUPP),
       "an unknown comp_mask: EOPNOTSUPP");
    ok(refuses((struct vb_mr_attr_v65){.access = IBV_ACCESS_REMOTE_WRITE, .mask = VB_REG_MR_ADDR, .addr = p.buf},
               EINVAL),
       "remote access without local access: EINVAL");
}

static void buffers(void)
{
    struct ibv_buf *buf;
    struct ibv_pd *other = ibv_alloc_pd(p.ctx);
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    char *at = ibv_alloc_buf(p.pd, 10000, &buf);
    need(at && other);
    ok((uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE) == 0, "a buffer begins at a page");
    memset(at, 1, 10000);
    struct ibv_mr *whole = ibv_reg_buf_mr(p.pd, buf, at, 10000, access);
    struct ibv_mr *part = ibv_reg_buf_mr(p.pd, buf, at + 4096, 100, access);
    struct ibv_mr *ex =
        reg((struct vb_mr_attr_v65){.length = 16, .mask = VB_REG_MR_ADDR | VB_REG_MR_BUF, .addr = at, .buf = buf});
    ok(whole && reached(whole, (uintptr_t)at + 9984, at + 9984), "registered");
    ok(part && part->addr == at + 4096 && reached(part, (uintptr_t)at + 4096, at + 4096), "a part of it");
    ok(ex && reached(ex, (uintptr_t)at, at), "by ibv_reg_mr_ex");
    ok(!ibv_reg_buf_mr(other, buf, at, 100, access) && errno == EINVAL, "in another domain: EINVAL");
    ok(!ibv_reg_buf_mr(p.pd, buf, at, 10001, access) && errno == EINVAL, "more than the buffer: EINVAL");
    ok(!ibv_reg_buf_mr(p.pd, buf, at + 10000, 1, access) && errno == EINVAL, "behind it: EINVAL");
    ok(!ibv_reg_buf_mr(p.pd, buf, at - 1, 1, access) && errno == EINVAL, "before it: EINVAL");
    ok(!ibv_reg_buf_mr(p.pd, buf, at + 1, SIZE_MAX, access) && errno == EINVAL, "a length that wraps: EINVAL");
    ok(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA, "it is not a dma-buf: ENODATA");
    ok(whole && part && ex && !ibv_dereg_mr(whole) && !ibv_dereg_mr(part) && !ibv_dereg_mr(ex), "deregistered");
    ibv_free_buf(buf);
    at = ibv_alloc_buf(other, 1, &buf);
    ok(at && ibv_dealloc_pd(other) == EBUSY, "a buffer holds its domain: EBUSY");
    ibv_free_buf(buf);
    struct ibv_parent_domain_init_attr attr = {.pd = other, .comp_mask = VB_PARENT_DOMAIN_UNPROTECTED};
    struct ibv_pd *parent = ibv_alloc_parent_domain(p.ctx, &attr);
    need(parent);
    at = ibv_alloc_buf(parent, 4096, &buf);
    struct ibv_mr *mr = at ? ibv_reg_buf_mr(parent, buf, at, 4096, access) : NULL;
    ok(mr && !ibv_reg_buf_mr(other, buf, at, 4096, access) && errno == EINVAL, "of a parent domain");
    ok(mr && ibv_dereg_mr(mr) == 0, "deregistered");
    ibv_free_buf(buf);
    ok(ibv_dealloc_pd(parent) == 0 && ibv_dealloc_pd(other) == 0, "and the domains are free");
    attr.comp_mask = 8;
    attr.pd = p.pd;
    ok(!ibv_alloc_parent_domain(p.ctx, &attr) && errno == EOPNOTSUPP, "a parent domain with an unknown comp_mask");
}

static void others(void)
{
    struct ibv_alloc_dm_attr attr = {.length = 4096};
    struct ibv_dm *dm = ibv_alloc_dm(p.ctx, &attr);
    struct ibv_port_attr port = {0};
    uint64_t speed = 0;
    ok(dm && ibv_dm_export_dmabuf_fd(dm) == -1 && errno == EOPNOTSUPP && ibv_free_dm(dm) == 0,
       "device memory is not a dma-buf: EOPNOTSUPP");
    ok(!ibv_alloc_dmah(p.ctx, NULL) && errno == EOPNOTSUPP, "DMA handles: EOPNOTSUPP");
    ok(ibv_query_port_speed(p.ctx, 1, &speed) == 0 && speed == 1000, "the port has 100 Gb/s");
    ok(ibv_query_port(p.ctx, 1, &port) == 0 && port.active_width == 2 && port.active_speed == 32,
       "4X of EDR, as UCX reads it");
    ok(ibv_query_port_speed(p.ctx, 2, &speed) == EINVAL, "another port: EINVAL");
}

/* Later versions of struct verbs_context have more functions before the older ones, and sz says how many. */
static void context(void)
{
    struct verbs_context *v = verbs_get_ctx(p.ctx);
    const struct vb_context_v65 *newer = VB_OF(struct vb_context_v65, end, &v->query_port);
    size_t old = sizeof(*v) - offsetof(struct verbs_context, query_port);
    ok(v->sz == old + sizeof(struct vb_context_v65), "the size of the context's functions");
    struct ibv_buf *buf;
    void *at = newer->alloc_buf(p.pd, 64, &buf);
    ok(at != NULL, "alloc_buf through the context");
    newer->free_buf(buf);
    ok(newer->alloc_dmah && newer->dealloc_dmah && newer->reg_mr_ex && newer->dm_export_dmabuf_fd, "and the others");
}

int main(void)
{
    VT_OWN("what Pumice offers of later versions of rdma-core");
    need_function(ibv_alloc_buf);
    struct ibv_context *ctx = vt_open();
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    regions();
    refused();
    buffers();
    others();
    context();
    ok(vt_pair_end(&p) && ibv_close_device(ctx) == 0, "all is closed");
    return vt_failed;
}
