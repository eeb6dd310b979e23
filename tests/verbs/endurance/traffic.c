// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verbs/endurance/endurance.h"

void post_recv(uint64_t index)
{
    uint64_t slot = index % par.depth;
    bool server = opt.host == NULL;
    uint8_t *p = st.block + (server ? st.msg_at + slot * st.slot_size : st.credit_at + slot * CREDIT_BYTES);
    uint32_t size = server ? st.slot_size : CREDIT_BYTES, cut = server ? (uint32_t)(mix(index) % (size + 1)) : size;
    struct ibv_sge sge[2] = {{(uintptr_t)p, cut, st.mr->lkey}, {(uintptr_t)p + cut, size - cut, st.mr->lkey}};
    struct ibv_recv_wr wr = {.wr_id = RECV_WR | index, .sg_list = sge, .num_sge = cut < size ? 2 : 1}, *bad;

    errno = st.srq ? ibv_post_srq_recv(st.srq, &wr, &bad) : ibv_post_recv(st.qp, &wr, &bad);
    if (errno != 0)
        die("post receive");
}

static bool post_send(struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->qp_type.xrc.remote_srqn = st.remote.srqn;
    errno = ibv_post_send(st.qp, wr, &bad);
    if (errno == 0)
        return true;
    if (!st.failed)
        die("post send");
    return false;
}

/* Each bind has another key. The window covers another part of the block each time. */
static void window_request(struct ibv_send_wr *wr, uint64_t k)
{
    uint64_t part = mix(k) % st.size;

    wr->num_sge = 0;
    wr->imm_data = 0; /* rxe refuses a bind with immediate data */
    wr->opcode = st.bound ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW;
    if (st.bound) {
        wr->invalidate_rkey = st.mw->rkey;
    } else {
        st.mw->rkey = ibv_inc_rkey(st.mw->rkey);
        wr->bind_mw.mw = st.mw;
        wr->bind_mw.rkey = st.mw->rkey;
        wr->bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = st.mr,
                                                          .addr = (uintptr_t)st.block + part,
                                                          .length = st.size - part,
                                                          .mw_access_flags = IBV_ACCESS_REMOTE_READ};
    }
    st.bound = !st.bound;
}

void issue(uint64_t k)
{
    struct operation o = operation_get(k);
    uint64_t slot = k % par.depth;
    uint8_t *local = st.block + (o.op >= OP_READ ? st.target_at : st.msg_at) + slot * st.slot_size;
    struct ibv_sge sge[2] = {{(uintptr_t)local, o.cut, st.mr->lkey},
                             {(uintptr_t)local + o.cut, o.size - o.cut, st.mr->lkey}};
    struct ibv_send_wr wr = {.wr_id = k, .sg_list = sge, .num_sge = 2, .imm_data = htonl((uint32_t)k)};
    static const enum ibv_wr_opcode code[OP_MAX] = {
        IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_BIND_MW,
    };

    wr.opcode = code[o.op];
    wr.send_flags = (o.solicited ? IBV_SEND_SOLICITED : 0) | (o.fence ? IBV_SEND_FENCE : 0);
    if (k % (uint64_t)opt.signal_every == 0 || is_sync(k))
        wr.send_flags |= IBV_SEND_SIGNALED;
    if (o.op == OP_BIND) {
        window_request(&wr, k);
        post_send(&wr);
        return;
    }
    if (o.op < OP_READ) {
        pattern(local, o.size, k, 0);
        if (o.inlined && o.size <= st.inline_max)
            wr.send_flags |= IBV_SEND_INLINE;
    }
    wr.wr.rdma.rkey = st.remote.rkey;
    wr.wr.rdma.remote_addr =
        st.remote.addr + (o.op == OP_READ ? st.source_at + o.source : st.target_at + slot * st.slot_size);
    if (o.op >= OP_FAA) {
        uint64_t *word = &st.atomic[o.word], value = mix(k);

        sge[0].length = 8;
        wr.num_sge = 1;
        wr.wr.atomic.rkey = st.remote.rkey;
        wr.wr.atomic.remote_addr = st.remote.addr + st.atomic_at + o.word * 8;
        /* Every third compare-and-swap compares with a wrong value and must leave the word as it is. */
        wr.wr.atomic.compare_add = o.op == OP_FAA ? value : *word + (k % 3 == 0);
        wr.wr.atomic.swap = value;
        st.expect[slot] = *word;
        *word = o.op == OP_FAA ? *word + value : k % 3 == 0 ? *word : value;
    }
    post_send(&wr);
}

/* Client: operation k has completed. */
static void finish(uint64_t k)
{
    struct operation o = operation_get(k);
    uint8_t *local = st.block + st.target_at + k % par.depth * st.slot_size;
    uint64_t value;

    st.bytes += o.size;
    if (o.op == OP_READ && memcmp(local, st.block + st.source_at + o.source, o.size) != 0) {
        printf("wrong data: operation %llu read size %u\n", (unsigned long long)k, o.size);
        exit(EXIT_DATA);
    }
    if (o.op != OP_FAA && o.op != OP_CAS)
        return;
    memcpy(&value, local, 8);
    if (value != st.expect[k % par.depth]) {
        printf("wrong data: operation %llu %s returned %llx instead of %llx\n", (unsigned long long)k, op_name[o.op],
               (unsigned long long)value, (unsigned long long)st.expect[k % par.depth]);
        exit(EXIT_DATA);
    }
}

/* Server: receive number `index` has completed; it and all WRITEs before it are looked at. */
static void receive(uint64_t index, const struct ibv_wc *wc)
{
    struct operation o;
    uint64_t k;

    do {
        k = st.checked++;
        o = operation_get(k);
        st.bytes += o.op >= OP_READ ? 0 : o.size;
        if (o.op == OP_WRITE || o.op == OP_WRITE_IMM)
            check(k, &o, st.block + st.target_at + k % par.depth * st.slot_size, k, 0);
    } while (!is_received(o.op));
    if (o.op != OP_WRITE_IMM)
        check(k, &o, st.block + st.msg_at + index % par.depth * st.slot_size, k, 0);
    if (wc->byte_len != o.size || wc->opcode != (o.op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
        (o.op != OP_SEND && (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != (uint32_t)k))) {
        printf("wrong completion: operation %llu %s: byte_len %u instead of %u, opcode %d, flags %x, immediate %x\n",
               (unsigned long long)k, op_name[o.op], wc->byte_len, o.size, (int)wc->opcode, wc->wc_flags,
               ntohl(wc->imm_data));
        exit(EXIT_DATA);
    }
    post_recv(index + par.depth);
}

void grant(void)
{
    uint64_t credit[2] = {st.checked, ~st.checked};
    uint8_t *p = st.block + st.credit_at + st.credits_posted % par.depth * CREDIT_BYTES;
    struct ibv_sge sge = {(uintptr_t)p, CREDIT_BYTES, st.mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = CREDIT_WR, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

    memcpy(p, credit, sizeof credit);
    st.before_credit = st.posted;
    if (post_send(&wr))
        st.credits_posted++;
    st.granted = st.checked;
}

static void credit_received(uint64_t index)
{
    uint64_t credit[2];

    memcpy(credit, st.block + st.credit_at + index % par.depth * CREDIT_BYTES, sizeof credit);
    if (credit[0] != ~credit[1] || credit[0] < st.checked || credit[0] > st.posted) {
        printf("wrong data: credit %llx %llx\n", (unsigned long long)credit[0], (unsigned long long)credit[1]);
        exit(EXIT_DATA);
    }
    st.checked = credit[0];
    post_recv(index + par.depth);
}

/* Notes which requests are not outstanding any more. The completion of a send request also ends all that were posted
 * before it, because a successful request without IBV_SEND_SIGNALED has no completion. The client posts a credit when its
 * previous credit has completed. The server sends credits only. */
static void note_end(const struct ibv_wc *wc)
{
    if (wc->wr_id == CREDIT_WR) {
        st.credits_ended++;
        if (st.ended < st.before_credit)
            st.ended = st.before_credit;
    } else if (!(wc->wr_id & RECV_WR)) {
        st.ended = wc->wr_id + 1;
    } else if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        st.recvs_flushed++;
    } else if (st.failed || wc->status != IBV_WC_SUCCESS) {
        st.recvs_late++;
    }
}

static void completion(const struct ibv_wc *wc)
{
    st.status[wc->status & 63]++;
    note_end(wc);
    if (wc->status != IBV_WC_SUCCESS) {
        if (!st.failed)
            printf("first-error %d %llu %s\n", (int)wc->status, (unsigned long long)now_ms(),
                   ibv_wc_status_str(wc->status));
        fflush(stdout);
        st.failed = true;
        return;
    }
    st.last_progress = now_ms();
    if (st.failed)
        return;
    if (wc->opcode & IBV_WC_RECV) {
        if (opt.host == NULL)
            receive(wc->wr_id & ~RECV_WR, wc);
        else
            credit_received(wc->wr_id & ~RECV_WR);
    } else if (wc->wr_id == CREDIT_WR) {
        st.credits_done++;
    } else {
        if (wc->wr_id < st.done || wc->wr_id >= st.posted) {
            printf("wrong completion: operation %llu, when %llu are done and %llu posted\n",
                   (unsigned long long)wc->wr_id, (unsigned long long)st.done, (unsigned long long)st.posted);
            exit(EXIT_DATA);
        }
        while (st.done <= wc->wr_id)
            finish(st.done++);
    }
}

int poll_all(void)
{
    struct ibv_wc wc[16];
    int n, total = 0;

    while ((n = ibv_poll_cq(st.cq, 16, wc)) > 0) {
        for (int i = 0; i < n; i++)
            completion(&wc[i]);
        total += n;
    }
    if (n < 0)
        die("poll completion queue");
    return total;
}

void wait_event(void)
{
    struct pollfd p = {.fd = st.channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    if (poll(&p, 1, 100) != 1)
        return;
    if (ibv_get_cq_event(st.channel, &cq, &context) != 0)
        die("completion event");
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(st.cq, 0) != 0)
        die("request notification");
}
