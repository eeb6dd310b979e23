// SPDX-License-Identifier: BSD-2-Clause
#include "examples/tagmpi/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 1, FIN_SIZE = sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh), MAX_READS = 16 };

/* A rank sends this to the others, so that they can connect to it. */
struct conn_info {
    union ibv_gid gid;
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t reads; /* RDMA READs that it can serve and send at the same time, on each queue pair */
    uint32_t tx[BOOT_MAX_RANKS], rx[BOOT_MAX_RANKS]; /* numbers of its queue pairs to each rank */
};

void fatal(unsigned rank, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "tagmpi: rank %u: ", rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void need(const struct device *d, bool holds, const char *what)
{
    if (!holds)
        fatal(d->rank, "%s: %s", what, strerror(errno));
}

/* --- memory --------------------------------------------------------------- */

void device_register(struct device *d, void *memory, size_t size)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;

    if (d->regions == MAX_REGIONS)
        fatal(d->rank, "at most %d regions can be registered", MAX_REGIONS);
    need(d, (d->region[d->regions] = ibv_reg_mr(d->pd, memory, size, access)) != NULL, "register memory");
    d->regions++;
}

const struct ibv_mr *device_region(const struct device *d, const void *p, size_t size)
{
    for (unsigned i = 0; i < d->regions && size > 0; i++) {
        const struct ibv_mr *mr = d->region[i];
        size_t at = (uintptr_t)p - (uintptr_t)mr->addr;
        if (at < mr->length && size <= mr->length - at)
            return mr;
    }
    if (size > 0)
        fatal(d->rank, "%zu bytes at %p are in no registered memory", size, p);
    return NULL;
}

void *device_slot(const struct device *d, uint64_t slot)
{
    return d->memory + slot * SLOT_SIZE;
}

void *device_fin(const struct device *d, uint64_t slot)
{
    return device_slot(d, RECV_SLOTS + slot);
}

static void *send_slot(const struct device *d, unsigned slot)
{
    return device_slot(d, RECV_SLOTS + FIN_SLOTS + slot);
}

static void make_memory(struct device *d)
{
    size_t size = (size_t)(RECV_SLOTS + FIN_SLOTS + SEND_SLOTS) * SLOT_SIZE;

    need(d, (d->memory = malloc(size)) != NULL, "memory for messages");
    need(d, (d->memory_mr = ibv_reg_mr(d->pd, d->memory, size, IBV_ACCESS_LOCAL_WRITE)) != NULL, "register memory");
    while (d->free_slots < SEND_SLOTS) {
        d->free_slot[d->free_slots] = d->free_slots;
        d->free_slots++;
    }
}

/* --- objects -------------------------------------------------------------- */

static void open_context(struct device *d)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    const char *name = getenv("TAGMPI_DEVICE");

    for (unsigned i = 0; list && list[i] && !d->context; i++)
        if (!name || strcmp(ibv_get_device_name(list[i]), name) == 0)
            d->context = ibv_open_device(list[i]);
    if (!d->context)
        fatal(d->rank, "no device %s (without RDMA hardware: pumice run --hosts 2 -- PROGRAM)", name ? name : "");
    ibv_free_device_list(list);
    need(d, (d->pd = ibv_alloc_pd(d->context)) != NULL, "protection domain");
}

/* The size of the device's list. The attributes of a device say whether it has tag matching. */
static void see_capabilities(struct device *d, struct ibv_device_attr_ex *attr)
{
    const struct ibv_tm_caps *caps = &attr->tm_caps;

    if (!(caps->flags & IBV_TM_CAP_RC))
        fatal(d->rank, "this device has no tag matching; try --offload off");
    d->max_tags = caps->max_num_tags < MAX_TAGS ? caps->max_num_tags : MAX_TAGS;
    /* Each entry may be added and deleted, and some operations report the count. */
    d->max_ops = caps->max_ops < 4 * d->max_tags ? caps->max_ops : 4 * d->max_tags;
}

/* The queue at which everything arrives, and its CQ. */
static void make_srq(struct device *d)
{
    struct ibv_cq_init_attr_ex cq = {.cqe = RECV_SLOTS + 2 * d->max_tags + d->max_ops,
                                     .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | (d->max_tags ? IBV_WC_EX_WITH_TM_INFO : 0)};
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = RECV_SLOTS, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = d->pd,
    };
    struct ibv_srq_init_attr fins = {.attr = {.max_wr = FIN_SLOTS, .max_sge = 1}};

    need(d, (d->rx_cq = ibv_create_cq_ex(d->context, &cq)) != NULL, "completion queue");
    if (d->max_tags) {
        srq.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
        srq.srq_type = IBV_SRQT_TM;
        srq.cq = ibv_cq_ex_to_cq(d->rx_cq);
        srq.tm_cap.max_num_tags = d->max_tags;
        srq.tm_cap.max_ops = d->max_ops;
    }
    need(d, (d->srq = ibv_create_srq_ex(d->context, &srq)) != NULL, "shared receive queue");
    need(d, (d->fin_srq = ibv_create_srq(d->pd, &fins)) != NULL, "shared receive queue for FINs");
    for (unsigned i = 0; i < RECV_SLOTS; i++)
        device_repost(d, i);
    for (unsigned i = 0; i < FIN_SLOTS; i++)
        device_repost_fin(d, i);
}

static void make_links(struct device *d)
{
    int cqe = (int)d->ranks * LINK_SENDS + FIN_SLOTS;

    need(d, (d->tx_cq = ibv_create_cq(d->context, cqe, NULL, NULL, 0)) != NULL, "completion queue");
    for (unsigned i = 0; i < d->ranks; i++) {
        struct ibv_qp_init_attr tx = {.qp_type = IBV_QPT_RC,
                                      .send_cq = d->tx_cq,
                                      .recv_cq = d->tx_cq,
                                      .srq = d->fin_srq,
                                      .cap = {.max_send_wr = LINK_SENDS, .max_send_sge = 1, .max_inline_data = 64}};
        struct ibv_cq *cq = ibv_cq_ex_to_cq(d->rx_cq);
        struct ibv_qp_init_attr rx = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .srq = d->srq};
        struct link *l = &d->link[i];
        need(d, (l->tx = ibv_create_qp(d->pd, &tx)) && (l->rx = ibv_create_qp(d->pd, &rx)), "queue pair");
        l->room = LINK_SENDS;
        d->max_inline = tx.cap.max_inline_data;
    }
}

/* --- connecting ----------------------------------------------------------- */

/* That of the user, or the first one of RoCE v2. On a NIC, index 0 is mostly one of RoCE v1. */
static unsigned gid_index(const struct device *d)
{
    const char *index = getenv("TAGMPI_GID_INDEX");
    struct ibv_gid_entry entry;

    if (index)
        return (unsigned)atoi(index);
    for (unsigned i = 0; ibv_query_gid_ex(d->context, PORT, i, &entry, 0) == 0; i++) {
        if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
            return i;
    }
    return 0; /* InfiniBand */
}

/* The first PSN of a queue pair. Any number is right if both ends know it. Numbers that are far apart, as here, help
 * readers of a capture: an ACK does not name the queue pair that sent it, but its PSN shows which connection it
 * belongs to. */
static uint32_t first_psn(uint32_t qpn)
{
    return qpn * 2654435761u >> 8;
}

static void connect_qp(const struct device *d, struct ibv_qp *qp, const struct conn_info *mine,
                       const struct conn_info *theirs, uint32_t qpn)
{
    uint8_t reads = mine->reads < theirs->reads ? mine->reads : theirs->reads;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu,
        .dest_qp_num = qpn,
        .rq_psn = first_psn(qpn),
        .min_rnr_timer = 1, /* 10 us: a receiver without buffers is about to free some */
        .max_dest_rd_atomic = reads,
        .ah_attr = {.is_global = 1,
                    .dlid = theirs->lid,
                    .port_num = PORT,
                    .grh = {.dgid = theirs->gid, .sgid_index = (uint8_t)gid_index(d), .hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .sq_psn = first_psn(qp->qp_num),
                              .timeout = 18, /* one second: the peer's machine may be busy */
                              .retry_cnt = 7,
                              .rnr_retry = 7, /* for ever: a receiver that computes receives nothing */
                              .max_rd_atomic = reads};

    need(d, ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "to INIT");
    need(d,
         ibv_modify_qp(qp, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "to RTR");
    need(d,
         ibv_modify_qp(qp, &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

static void connect_all(struct device *d, const struct boot *b, const struct ibv_device_attr *attr)
{
    struct conn_info mine = {0}, all[BOOT_MAX_RANKS];
    struct ibv_port_attr port;
    int reads = attr->max_qp_rd_atom < attr->max_qp_init_rd_atom ? attr->max_qp_rd_atom : attr->max_qp_init_rd_atom;

    need(d, ibv_query_port(d->context, PORT, &port) == 0, "port");
    need(d, ibv_query_gid(d->context, PORT, (int)gid_index(d), &mine.gid) == 0, "GID");
    mine.lid = port.lid;
    mine.mtu = (uint8_t)port.active_mtu;
    mine.reads = (uint8_t)(reads < MAX_READS ? reads : MAX_READS);
    for (unsigned i = 0; i < d->ranks; i++) {
        mine.tx[i] = d->link[i].tx->qp_num;
        mine.rx[i] = d->link[i].rx->qp_num;
    }
    boot_exchange(b, &mine, all, sizeof(mine));
    for (unsigned i = 0; i < d->ranks; i++) {
        connect_qp(d, d->link[i].tx, &mine, &all[i], all[i].rx[d->rank]);
        connect_qp(d, d->link[i].rx, &mine, &all[i], all[i].tx[d->rank]);
    }
    boot_exchange(b, NULL, NULL, 0); /* no rank sends before all are connected */
}

void device_open(struct device *d, const struct boot *b, bool offload)
{
    struct ibv_device_attr_ex attr;

    *d = (struct device){.rank = b->rank, .ranks = b->ranks};
    open_context(d);
    need(d, ibv_query_device_ex(d->context, NULL, &attr) == 0, "query the device");
    if (offload)
        see_capabilities(d, &attr);
    make_memory(d);
    make_srq(d);
    make_links(d);
    connect_all(d, b, &attr.orig_attr);
}

void device_close(struct device *d)
{
    bool ok = true;

    for (unsigned i = 0; i < d->ranks; i++)
        ok = ibv_destroy_qp(d->link[i].tx) == 0 && ibv_destroy_qp(d->link[i].rx) == 0 && ok;
    ok = ibv_destroy_srq(d->srq) == 0 && ibv_destroy_srq(d->fin_srq) == 0 && ok;
    ok = ibv_destroy_cq(ibv_cq_ex_to_cq(d->rx_cq)) == 0 && ibv_destroy_cq(d->tx_cq) == 0 && ok;
    for (unsigned i = 0; i < d->regions; i++)
        ok = ibv_dereg_mr(d->region[i]) == 0 && ok;
    ok = ibv_dereg_mr(d->memory_mr) == 0 && ibv_dealloc_pd(d->pd) == 0 && ibv_close_device(d->context) == 0 && ok;
    need(d, ok, "an object can't be destroyed");
    free(d->memory);
}

/* --- receiving ------------------------------------------------------------ */

static void post(struct device *d, struct ibv_srq *srq, uint64_t slot, void *at, uint32_t size)
{
    struct ibv_sge sge = {.addr = (uintptr_t)at, .length = size, .lkey = d->memory_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    need(d, (errno = ibv_post_srq_recv(srq, &wr, &bad)) == 0, "post receive");
}

void device_repost(struct device *d, uint64_t slot)
{
    post(d, d->srq, slot, device_slot(d, slot), SLOT_SIZE);
}

void device_repost_fin(struct device *d, uint64_t slot)
{
    post(d, d->fin_srq, slot, device_fin(d, slot), FIN_SIZE);
}

bool device_poll(struct device *d, struct arrival *a)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info = {0};
    struct ibv_cq_ex *cq = d->rx_cq;

    if (ibv_start_poll(cq, &attr) != 0)
        return false;
    if (cq->status == IBV_WC_LOC_LEN_ERR || cq->status == IBV_WC_TM_RNDV_INCOMPLETE)
        fatal(d->rank, "a message is longer than the buffer of its receive");
    if (cq->status != IBV_WC_SUCCESS)
        fatal(d->rank, "receive: %s (vendor error 0x%x)", ibv_wc_status_str(cq->status), ibv_wc_read_vendor_err(cq));
    *a = (struct arrival){.opcode = ibv_wc_read_opcode(cq),
                          .flags = ibv_wc_read_wc_flags(cq),
                          .wr_id = cq->wr_id,
                          .length = ibv_wc_read_byte_len(cq)};
    if (a->flags & IBV_WC_TM_MATCH)
        ibv_wc_read_tm_info(cq, &info);
    a->tag = info.tag;
    ibv_end_poll(cq);
    return true;
}

/* --- sending -------------------------------------------------------------- */

void *device_send_slot(struct device *d, unsigned peer, unsigned *slot)
{
    if (d->free_slots == 0 || d->link[peer].room == 0)
        return NULL;
    *slot = d->free_slot[--d->free_slots];
    d->slot_peer[*slot] = peer;
    d->link[peer].room--;
    return send_slot(d, *slot);
}

void device_send(struct device *d, unsigned peer, unsigned slot, uint32_t length, unsigned flags)
{
    struct ibv_sge sge = {.addr = (uintptr_t)send_slot(d, slot), .length = length, .lkey = d->memory_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    wr.send_flags = IBV_SEND_SIGNALED | flags | (length <= d->max_inline ? IBV_SEND_INLINE : 0);
    need(d, (errno = ibv_post_send(d->link[peer].tx, &wr, &bad)) == 0, "post send");
}

void device_sent(struct device *d, uint64_t slot)
{
    d->link[d->slot_peer[slot]].room++;
    d->free_slot[d->free_slots++] = (unsigned)slot;
}

void device_read(struct device *d, unsigned peer, const struct ibv_sge *to, uint64_t va, uint32_t rkey, uint64_t wr_id)
{
    struct ibv_sge sge = *to;
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = va, .rkey = rkey}},
                       *bad;

    d->link[peer].room--;
    need(d, (errno = ibv_post_send(d->link[peer].tx, &wr, &bad)) == 0, "post READ");
}
