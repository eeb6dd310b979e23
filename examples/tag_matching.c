// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching, step by step: from an empty list to a rendezvous. docs/tag-matching.md explains the steps.
 *
 *     pumice run --hosts 2 -- build/examples/tag_matching                                    all steps
 *     pumice run --hosts 2 -- build/examples/tag_matching --step 4 --show 'pumice tm list'   up to step 4, then a command
 *
 * The program opens the devices of both hosts. Host 0 receives: it has a shared receive queue with a matching list (TM-SRQ). Host 1 sends.
 * A message begins with a tag matching header (struct ibv_tmh), which holds its tag. The device of host 0 compares the tag with its list. */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Adapters receive nothing before a TM-SRQ has 33 buffers. */
enum { MAX_TAGS = 16, BUFFERS = 40, BUFFER = 64, SPACE = 65536, PSN = 77, LARGE = 5000 };
enum { BUFFER_AT = 0, ENTRY_AT = 4096, INBOX_AT = 4096, DATA_AT = 16384 }; /* offsets in a host's memory */

static struct host {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq_ex *cq; /* all completions of the host */
    struct ibv_srq *srq; /* of host 0: the queue with the matching list */
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory; /* SPACE bytes */
    union ibv_gid gid;
    uint8_t gid_index;
} receiver, sender;

static bool shown; /* is this step printed? */
static uint32_t handle; /* of the newest entry */
static uint32_t unexpected; /* messages that came without an entry */

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "tag_matching: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- objects -------------------------------------------------------------- */

/* The index of the first GID of RoCE v2. On a NIC, index 0 is mostly one of RoCE v1. */
static uint8_t find_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    for (uint8_t i = 0; ibv_query_gid_ex(ctx, 1, i, &entry, 0) == 0; i++) {
        if (entry.gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        *gid = entry.gid;
        return i;
    }
    need(false, "no GID of RoCE v2");
    return 0;
}

static void open_host(struct host *h, const char *number)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    setenv("PUMICE_HOST", number, 1);
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0] && (h->ctx = ibv_open_device(list[0])) != NULL, "no device (run it by pumice run --hosts 2)");
    ibv_free_device_list(list);
    h->gid_index = find_gid(h->ctx, &h->gid);
    need((h->pd = ibv_alloc_pd(h->ctx)) != NULL, "protection domain");
    need((h->memory = calloc(1, SPACE)) != NULL, "memory");
    need((h->mr = ibv_reg_mr(h->pd, h->memory, SPACE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) != NULL,
         "memory region");
    /* The completions of tag matching need a queue of the extended kind. */
    need((h->cq = ibv_create_cq_ex(h->ctx, &attr)) != NULL, "completion queue");
}

/* In the reverse order: an object that another one uses can't be destroyed. */
static void close_host(struct host *h)
{
    need(!h->qp || ibv_destroy_qp(h->qp) == 0, "destroy the queue pair");
    need(!h->srq || ibv_destroy_srq(h->srq) == 0, "destroy the shared receive queue");
    need(ibv_destroy_cq(ibv_cq_ex_to_cq(h->cq)) == 0 && ibv_dereg_mr(h->mr) == 0 && ibv_dealloc_pd(h->pd) == 0 &&
             ibv_close_device(h->ctx) == 0,
         "close the device");
    free(h->memory);
}

static void make_qp(struct host *h)
{
    struct ibv_cq *cq = ibv_cq_ex_to_cq(h->cq);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .srq = h->srq,
                                    .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    need((h->qp = ibv_create_qp(h->pd, &init)) != NULL, "queue pair");
    need(ibv_modify_qp(h->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "to INIT");
}

static void connect_to(struct host *h, const struct host *peer)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer->qp->qp_num,
                              .rq_psn = PSN,
                              .max_dest_rd_atomic = 4,
                              .min_rnr_timer = 1,
                              .ah_attr = {.is_global = 1,
                                          .port_num = 1,
                                          .grh = {.dgid = peer->gid, .sgid_index = h->gid_index, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = PSN, .max_rd_atomic = 4};
    need(ibv_modify_qp(h->qp, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "to RTR");
    need(ibv_modify_qp(h->qp, &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

static struct ibv_sge at(const struct host *h, uint32_t offset, uint32_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)h->memory + offset, .length = length, .lkey = h->mr->lkey};
}

/* --- completions ---------------------------------------------------------- */

/* An unexpected message lies in a buffer of the shared receive queue, as it came: its header first. wr_id is the number of the buffer. */
static void print_unexpected(uint64_t wr_id)
{
    struct ibv_tmh header;
    memcpy(&header, receiver.memory + BUFFER_AT + wr_id * BUFFER, sizeof(header));
    printf(", unexpected; the header in this buffer has tag 0x%lx", (unsigned long)be64toh(header.tag));
}

/* Waits for the next completion of a host, and prints it. */
static void await(const char *who, struct host *h)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info = {0};
    time_t end = time(NULL) + 20;
    while (ibv_start_poll(h->cq, &attr) != 0)
        need(time(NULL) < end, "a completion does not come");
    need(h->cq->status == IBV_WC_SUCCESS, ibv_wc_status_str(h->cq->status));
    enum ibv_wc_opcode opcode = ibv_wc_read_opcode(h->cq);
    unsigned flags = ibv_wc_read_wc_flags(h->cq);
    const char *name = opcode == IBV_WC_TM_ADD    ? "TM_ADD"
                       : opcode == IBV_WC_TM_DEL  ? "TM_DEL"
                       : opcode == IBV_WC_TM_RECV ? "TM_RECV"
                                                  : "RECV";
    ibv_wc_read_tm_info(h->cq, &info);
    if (shown) {
        printf("%s: %s, wr_id %lu", who, name, (unsigned long)h->cq->wr_id);
        if (flags & IBV_WC_TM_MATCH)
            printf(", MATCH, tag 0x%lx", (unsigned long)info.tag);
        if (flags & IBV_WC_TM_DATA_VALID)
            printf(", DATA_VALID");
        if (opcode == IBV_WC_TM_RECV && !(flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)))
            print_unexpected(h->cq->wr_id);
        printf("\n");
    }
    ibv_end_poll(h->cq);
}

/* --- the receiver: operations on the list --------------------------------- */

static void buffer(uint32_t wr_id)
{
    struct ibv_sge s = at(&receiver, BUFFER_AT + wr_id * BUFFER, BUFFER);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_srq_recv(receiver.srq, &wr, &bad) == 0, "a buffer for unexpected messages");
}

static void operate(struct ibv_ops_wr *wr)
{
    struct ibv_ops_wr *bad;
    wr->flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
    wr->tm.unexpected_cnt = unexpected;
    need(ibv_post_srq_ops(receiver.srq, wr, &bad) == 0, "an operation on the list");
    await("host 0", &receiver);
}

/* wr_id of the operation, and plus 100 of the message that the entry takes */
static void add(uint64_t wr_id, uint64_t tag, uint64_t mask, uint32_t length)
{
    struct ibv_sge s = at(&receiver, ENTRY_AT, length);
    struct ibv_ops_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_TAG_ADD};
    wr.tm.add.recv_wr_id = wr_id + 100;
    wr.tm.add.sg_list = &s;
    wr.tm.add.num_sge = 1;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = mask;
    operate(&wr);
    handle = wr.tm.handle;
}

static void delete (uint64_t wr_id)
{
    struct ibv_ops_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_TAG_DEL};
    wr.tm.handle = handle;
    operate(&wr);
}

/* --- the sender ----------------------------------------------------------- */

static void send_header(uint8_t opcode, uint64_t tag, uint32_t length)
{
    struct ibv_tmh header = {.opcode = opcode, .tag = htobe64(tag)};
    memcpy(sender.memory, &header, sizeof(header));
    struct ibv_sge s = at(&sender, 0, (uint32_t)sizeof(header) + length);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    need(ibv_post_send(sender.qp, &wr, &bad) == 0, "a message");
}

/* The data follow the header. */
static void send_eager(uint64_t tag, const char *text)
{
    strcpy(sender.memory + sizeof(struct ibv_tmh), text);
    send_header(IBV_TMH_EAGER, tag, (uint32_t)strlen(text) + 1);
}

/* The header says where the data are. A receive request waits for the FIN. */
static void send_rendezvous(uint64_t tag, uint32_t length)
{
    struct ibv_rvh where = {
        .va = htobe64((uintptr_t)sender.memory + DATA_AT), .rkey = htobe32(sender.mr->rkey), .len = htobe32(length)};
    struct ibv_sge s = at(&sender, INBOX_AT, BUFFER);
    struct ibv_recv_wr fin = {.wr_id = 1, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_recv(sender.qp, &fin, &bad) == 0, "a receive request for the FIN");
    memset(sender.memory + DATA_AT, 'x', length);
    memcpy(sender.memory + sizeof(struct ibv_tmh), &where, sizeof(where));
    send_header(IBV_TMH_RNDV, tag, sizeof(where));
}

/* --- the steps ------------------------------------------------------------ */

static void empty_list(void)
{
    struct ibv_srq_init_attr_ex attr = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .attr = {.max_wr = BUFFERS, .max_sge = 1},
                                        .pd = receiver.pd,
                                        .cq = ibv_cq_ex_to_cq(receiver.cq),
                                        .tm_cap = {.max_num_tags = MAX_TAGS, .max_ops = MAX_TAGS}};
    need((receiver.srq = ibv_create_srq_ex(receiver.ctx, &attr)) != NULL, "shared receive queue with a matching list");
    make_qp(&receiver);
    make_qp(&sender);
    connect_to(&receiver, &sender);
    connect_to(&sender, &receiver);
    for (uint32_t i = 0; i < BUFFERS; i++)
        buffer(i);
}

static void unexpected_message(void)
{
    send_eager(0x10, "early");
    await("host 0", &receiver);
    unexpected++;
}

static void entry(void)
{
    add(1, 0x20, UINT64_MAX, BUFFER);
}

static void eager(void)
{
    send_eager(0x20, "expected");
    await("host 0", &receiver);
    if (shown)
        printf("host 0: the buffer of the entry has \"%s\"\n", receiver.memory + ENTRY_AT);
}

static void wildcard(void)
{
    add(2, 0x30, 0xf0, BUFFER);
    send_eager(0x37, "any of sixteen");
    await("host 0", &receiver);
}

static void deleted(void)
{
    add(3, 0x40, UINT64_MAX, BUFFER);
    delete (4);
    send_eager(0x40, "too late");
    await("host 0", &receiver);
    unexpected++;
}

static void rendezvous(void)
{
    add(5, 0x50, UINT64_MAX, LARGE);
    send_rendezvous(0x50, LARGE);
    await("host 0", &receiver);
    await("host 0", &receiver);
    if (shown)
        printf("host 0: %s\n", memcmp(receiver.memory + ENTRY_AT, sender.memory + DATA_AT, LARGE)
                                   ? "the data are wrong"
                                   : "all data are there");
    await("host 1", &sender);
}

static const struct step {
    const char *name;
    void (*run)(void);
} steps[] = {{"an empty list", empty_list},
             {"a message that no entry waits for", unexpected_message},
             {"an entry", entry},
             {"an eager message", eager},
             {"an entry for several tags", wildcard},
             {"an entry that is deleted", deleted},
             {"a rendezvous", rendezvous}};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void usage(FILE *f)
{
    fprintf(f, "usage: tag_matching [--step N] [--show COMMAND]\n"
               "  --step N        go on to step N of 1 ... 7, and print this step only\n"
               "  --show COMMAND  then run a shell command, while the list is still there\n");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"step", required_argument, NULL, 's'},
                                            {"show", required_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    unsigned long last = 0;
    const char *command = NULL;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            last = strtoul(optarg, NULL, 10);
        if (c == 'c')
            command = optarg;
        if (c == 'h' || c == '?' || (c == 's' && (last < 1 || last > STEPS))) {
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    open_host(&receiver, "0");
    open_host(&sender, "1");
    for (unsigned long i = 0; i < (last ? last : STEPS); i++) {
        shown = last == 0 || i + 1 == last;
        if (shown)
            printf("step %lu: %s\n", i + 1, steps[i].name);
        steps[i].run();
    }
    fflush(stdout);
    bool failed = command && system(command) != 0;
    close_host(&receiver);
    close_host(&sender);
    return failed;
}
