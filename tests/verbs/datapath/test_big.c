// SPDX-License-Identifier: BSD-2-Clause
/* Messages at the limit of the port: 2^31 bytes on Pumice. The address space maps the same two MiB again and again, so
 * that memory suffices. */
#include <sys/mman.h>

#include "tests/verbs/ends.h"

#define CHUNK ((size_t)2 << 20)

static size_t total; /* bytes of the longest message, a multiple of 2 */
static size_t compared; /* bytes of it that are compared: a whole chunk, or the message */
static struct vt_end a, b; /* a asks, b has the other memory */
static struct ibv_mr *mr[2]; /* source, destination */
static char *mem[2];

/* total bytes of address space over CHUNK bytes of memory. */
static char *repeated(void)
{
    int fd = memfd_create("test_big", 0);
    need(fd >= 0 && ftruncate(fd, CHUNK) == 0);
    char *base = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(base != MAP_FAILED);
    for (size_t at = 0; at < total; at += CHUNK)
        need(mmap(base + at, total - at < CHUNK ? total - at : CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                  fd, 0) != MAP_FAILED);
    close(fd);
    return base;
}

static void fill(char *to, unsigned seed)
{
    for (size_t i = 0; i + 8 <= compared; i += 8) {
        uint64_t v = (seed + i) * 0x9e3779b97f4a7c15ull;
        memcpy(to + i, &v, 8);
    }
}

/* One request of len bytes; how it completed, -1 for not at all. */
static int request(enum ibv_wr_opcode opcode, const struct ibv_sge *sge, int num_sge, struct ibv_wc *wc)
{
    struct ibv_send_wr wr = {.sg_list = (struct ibv_sge *)sge,
                             .num_sge = num_sge,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)mem[1];
    wr.wr.rdma.rkey = mr[1]->rkey;
    int rc = ibv_post_send(a.qp, &wr, &bad);
    if (rc)
        return -rc;
    double end = vt_now() + 120;
    while (vt_now() < end)
        if (ibv_poll_cq(a.scq, 1, wc) == 1)
            return wc->status;
    return -1;
}

static void at_the_limit(void)
{
    struct ibv_sge half[2] = {{(uintptr_t)mem[0], (uint32_t)(total / 2), mr[0]->lkey},
                              {(uintptr_t)mem[0] + total / 2, (uint32_t)(total / 2), mr[0]->lkey}};
    struct ibv_sge recv[2] = {{(uintptr_t)mem[1], (uint32_t)(total / 2), mr[1]->lkey},
                              {(uintptr_t)mem[1] + total / 2, (uint32_t)(total / 2), mr[1]->lkey}};
    struct ibv_recv_wr rr = {.sg_list = recv, .num_sge = 2}, *bad;
    struct ibv_wc wc;

    fill(mem[0], 1);
    ok(request(IBV_WR_RDMA_WRITE, half, 2, &wc) == IBV_WC_SUCCESS && memcmp(mem[0], mem[1], compared) == 0,
       "a WRITE of the longest message");
    fill(mem[1], 2);
    ok(request(IBV_WR_RDMA_READ, half, 2, &wc) == IBV_WC_SUCCESS && wc.byte_len == total &&
           memcmp(mem[0], mem[1], compared) == 0,
       "a READ of it");
    fill(mem[0], 3);
    need(ibv_post_recv(b.qp, &rr, &bad) == 0);
    ok(request(IBV_WR_SEND, half, 2, &wc) == IBV_WC_SUCCESS && vt_poll(b.rcq, 1, &wc) == 1 &&
           wc.status == IBV_WC_SUCCESS && wc.byte_len == total && memcmp(mem[0], mem[1], compared) == 0,
       "a SEND of it");
}

static void beyond_the_limit(void)
{
    struct ibv_sge three[3] = {{(uintptr_t)mem[0], (uint32_t)(total / 2), mr[0]->lkey},
                               {(uintptr_t)mem[0] + total / 2, (uint32_t)(total / 2), mr[0]->lkey},
                               {(uintptr_t)mem[0], 1, mr[0]->lkey}};
    struct ibv_wc wc;
    int rc = request(IBV_WR_RDMA_WRITE, three, 3, &wc);
    ok(vt_is_pumice() ? rc == -EINVAL : rc != IBV_WC_SUCCESS, "a byte more: EINVAL");
    if (rc > 0) /* a device may find it only when it executes the request */
        return;
    ok(request(IBV_WR_RDMA_WRITE, three, 1, &wc) == IBV_WC_SUCCESS, "and the queue pair works on");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    struct ibv_port_attr pa = vt_port_attr(ca), pb = vt_port_attr(cb);
    total = (pa.max_msg_sz < pb.max_msg_sz ? pa.max_msg_sz : pb.max_msg_sz) & ~1u;
    compared = total < CHUNK ? total : CHUNK;
    ok_pumice(total == (size_t)1 << 31, "the longest message has 2^31 bytes");
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    for (int i = 0; i < 2; i++) {
        mem[i] = repeated();
        need((mr[i] = ibv_reg_mr(i ? b.pd : a.pd, mem[i], total, all)));
    }
    at_the_limit();
    beyond_the_limit();
    for (int i = 0; i < 2; i++)
        need(ibv_dereg_mr(mr[i]) == 0 && munmap(mem[i], total) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is given back");
}

int main(void)
{
    return vt_both(test);
}
