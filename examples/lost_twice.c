// SPDX-License-Identifier: BSD-2-Clause
/* A program with a bug that needs two lost packets of thousands. docs/replay.md finds them:
 *
 *     pumice shrink --fault loss=1% -- build/examples/lost_twice
 *
 * A client and a server talk by datagrams (UD), which may get lost. The client asks the server 2000 times to add 1 to a
 * counter, and asks again if no answer comes. The server knows a repeated request by its number, and does not add twice.
 * The bug is marked below: the client does not forget its failed attempts when an answer comes. */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ADDITIONS = 2000,
    ATTEMPTS = 2, /* then the client connects again */
    SLOTS = 16,
    HEADER = 40, /* the area in front of a received datagram */
    SLOT_BYTES = 64,
    QKEY = 0x11111111,
    WAIT_NS = 2000000,
    TURNS = 8,
};

struct side {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    char *receive; /* SLOTS slots */
    uint32_t *send;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_ah *to_self;
static char *memory;
static struct side client, server;

static void need(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "lost_twice: %s failed\n", what);
        exit(2);
    }
}

/* --- datagrams --------------------------------------------------------------------------------- */

static void post_receive(struct side *s, uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t)s->receive + slot * SLOT_BYTES, SLOT_BYTES, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    need(ibv_post_recv(s->qp, &wr, &bad) == 0, "a receive request");
}

static void send_number(struct side *from, const struct side *to, uint32_t number)
{
    struct ibv_sge sge = {(uintptr_t)from->send, sizeof(number), mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE,
                             .wr.ud = {to_self, to->qp->qp_num, QKEY}},
                       *bad;

    *from->send = number;
    need(ibv_post_send(from->qp, &wr, &bad) == 0, "a send request");
}

/* Takes a number that has arrived. False: there is none. */
static bool take_number(struct side *s, uint32_t *number)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(s->cq, 1, &wc) == 1) {
        need(wc.status == IBV_WC_SUCCESS, "a request");
        if (wc.opcode != IBV_WC_RECV)
            continue;
        memcpy(number, s->receive + wc.wr_id * SLOT_BYTES + HEADER, sizeof(*number));
        post_receive(s, wc.wr_id);
        return true;
    }
    return false;
}

/* --- the server -------------------------------------------------------------------------------- */

static uint32_t counter, latest;

static void serve(void)
{
    uint32_t number;

    while (take_number(&server, &number)) {
        counter += number != latest; /* not for a repeated request */
        latest = number;
        send_number(&server, &client, number);
    }
}

/* --- the client -------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Waits for the answer to a request. False: it is lost. On a busy machine a time alone does not prove that: so the device
 * must also have had its turn, which it has when it answers questions. */
static bool answered(uint32_t number)
{
    uint64_t until = now_ns() + WAIT_NS;
    unsigned turns = 0;
    uint32_t got;

    while (turns < TURNS) {
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;

        serve();
        while (take_number(&client, &got))
            if (got == number)
                return true;
        if (now_ns() < until)
            continue;
        need(ibv_query_qp(client.qp, &attr, IBV_QP_STATE, &init) == 0, "a query");
        turns++;
    }
    return false;
}

static void add_all(void)
{
    uint32_t number = 1, failed = 0, connections = 1;

    for (unsigned i = 0; i < ADDITIONS; i++) {
        send_number(&client, &server, number);
        while (!answered(number)) {
            if (++failed == ATTEMPTS) {
                /* The server seems to be a new one, which has seen no requests: so this one gets a new number. */
                number += 1u << 16;
                connections++;
                failed = 0;
            }
            send_number(&client, &server, number);
        }
        number++;
        /* The bug: `failed = 0;` is missing. Two lost packets, even a thousand requests apart, look like a new server.
         * If it is the answer that was lost the second time, the server has added already, and adds again. */
    }
    printf("%u connections\n", connections);
}

/* --- setting up -------------------------------------------------------------------------------- */

static void set_up_side(struct side *s, char *at)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

    s->cq = ibv_create_cq(context, 4 * SLOTS, NULL, NULL, 0);
    need(s->cq != NULL, "making a completion queue");
    struct ibv_qp_init_attr init = {.send_cq = s->cq,
                                    .recv_cq = s->cq,
                                    .cap = {SLOTS, SLOTS, 1, 1, sizeof(uint32_t)},
                                    .qp_type = IBV_QPT_UD,
                                    .sq_sig_all = 1};
    s->qp = ibv_create_qp(pd, &init);
    need(s->qp && ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0, "INIT");
    a.qp_state = IBV_QPS_RTR;
    need(ibv_modify_qp(s->qp, &a, IBV_QP_STATE) == 0, "RTR");
    a.qp_state = IBV_QPS_RTS;
    need(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
    s->receive = at;
    s->send = (uint32_t *)(void *)(at + SLOTS * SLOT_BYTES);
    for (uint64_t i = 0; i < SLOTS; i++)
        post_receive(s, i);
}

static void set_up(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_ah_attr self = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
    size_t size = (SLOTS + 1) * SLOT_BYTES;

    need(list && list[0], "finding a device");
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    need(context && ibv_query_gid(context, 1, 0, &self.grh.dgid) == 0, "opening the device");
    pd = ibv_alloc_pd(context);
    memory = calloc(2, size);
    need(pd && memory, "making objects");
    mr = ibv_reg_mr(pd, memory, 2 * size, IBV_ACCESS_LOCAL_WRITE);
    to_self = ibv_create_ah(pd, &self);
    need(mr && to_self, "making objects");
    set_up_side(&client, memory);
    set_up_side(&server, memory + size);
}

int main(void)
{
    set_up();
    add_all();
    ibv_destroy_qp(client.qp);
    ibv_destroy_qp(server.qp);
    ibv_destroy_cq(client.cq);
    ibv_destroy_cq(server.cq);
    ibv_destroy_ah(to_self);
    ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    free(memory);
    if (counter != ADDITIONS) {
        printf("wrong: the counter is %u after %u additions\n", counter, (unsigned)ADDITIONS);
        return 1;
    }
    printf("right: the counter is %u\n", counter);
    return 0;
}
