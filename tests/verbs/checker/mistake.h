// SPDX-License-Identifier: BSD-2-Clause
/* The common part of the programs with mistakes that the checker finds: two connected queue pairs, some requests, and the choice of a
 * mistake by the command line: PROGRAM NAME wrong|right */
#ifndef PUMICE_TESTS_VERBS_CHECKER_MISTAKE_H
#define PUMICE_TESTS_VERBS_CHECKER_MISTAKE_H

#include "tests/verbs/vt.h"

struct mistake {
    const char *name;
    void (*make)(void);
};

static struct vt_pair p;
static bool wrong;

static inline struct ibv_wc take(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.status = 255};
    need(vt_poll(cq, 1, &wc) == 1);
    return wc;
}

static inline int write_to(uint32_t from, uint32_t to, uint32_t len, unsigned flags)
{
    struct ibv_sge s = vt_sge(&p, from, len);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = flags,
                             .wr.rdma = {(uintptr_t)p.buf + to, p.mr->rkey}},
                       *bad;
    return ibv_post_send(p.qp[0], &wr, &bad);
}

static inline int read_to(uint32_t to, uint32_t from, uint32_t len, uint64_t id)
{
    struct ibv_sge s = vt_sge(&p, to, len);
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf + from, p.mr->rkey}},
                       *bad;
    return ibv_post_send(p.qp[0], &wr, &bad);
}

/* Finds the mistake that the user has named, and connects the queue pairs. Without a mistake of that name, the program ends. */
static inline const struct mistake *mistake_begin(int argc, char **argv, const struct mistake *list, size_t n)
{
    const struct ibv_qp_cap cap = {16, 16, 1, 1, 0};
    for (size_t i = 0; argc == 3 && i < n; i++) {
        if (strcmp(list[i].name, argv[1]) != 0)
            continue;
        wrong = strcmp(argv[2], "wrong") == 0;
        vt_pair_make(&p, vt_open(), &cap);
        vt_connect(&p);
        return &list[i];
    }
    fprintf(stderr, "usage: %s NAME wrong|right\n", argv[0]);
    exit(2);
}

/* Destroys all objects. Returns the exit code of the program. */
static inline int mistake_end(void)
{
    need(vt_pair_end(&p) && ibv_close_device(p.ctx) == 0);
    return vt_failed;
}

#endif
