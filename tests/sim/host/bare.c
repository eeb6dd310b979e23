// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/host/bare.h"

#include <stdlib.h>
#include <string.h>

void *bare_zeroed(size_t len)
{
    size_t whole = (len + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole);
    if (!p)
        abort();
    return memset(p, 0, whole);
}

static int no_read(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst)
{
    (void)ctx, (void)src, (void)nsrc, (void)dst, (void)ndst;
    return 0;
}

static int no_write(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src,
                    size_t len)
{
    (void)ctx, (void)qpn, (void)dst, (void)ndst, (void)src, (void)len;
    return 0;
}

static int no_atomic(void *ctx, const struct mem_segment *where, enum mem_atomic op, uint64_t compare_add,
                     uint64_t swap, uint64_t *old)
{
    (void)ctx, (void)where, (void)op, (void)compare_add, (void)swap;
    *old = 0;
    return 0;
}

const struct mem_ops bare_mem_ops = {.read = no_read, .write = no_write, .atomic = no_atomic};

void bare_gid(int n, uint8_t gid[16])
{
    memset(gid, 0, 16);
    gid[15] = (uint8_t)(n + 1);
}

void bare_connect(struct qp *qp, const struct qp *peer, int peer_number, const struct qp_attr *like)
{
    static const uint32_t masks[] = {
        QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
        QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
        QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,
    };
    struct qp_attr a = *like;
    a.dest_qpn = qp_number(peer);
    bare_gid(peer_number, a.av.dgid);
    for (int i = 0; i < 3; i++) {
        a.state = (uint8_t)(QPS_INIT + i);
        if (qp_modify(qp, &a, masks[i], NULL) != 0)
            abort();
    }
}

void bare_transmit(struct engine *e, int from, struct net *net, uint64_t now)
{
    static uint8_t buf[1 << 18];
    static struct tx_batch b;
    b = (struct tx_batch){.buf = buf, .cap = sizeof buf};
    while (engine_tx(e, &b, now) > 0) {
        for (uint32_t i = 0; i < b.n; i++) {
            struct wirepkt *p = net_alloc(b.pkt[i].len);
            memcpy(p->data, buf + b.pkt[i].off, b.pkt[i].len);
            p->src = from;
            p->dst = b.pkt[i].av->dgid[15] - 1;
            net_send(net, p, now);
        }
        b.n = 0;
        b.used = 0;
    }
}

void bare_receive(struct engine *e, struct wirepkt *p, struct net *net, uint64_t now)
{
    struct pkt k;
    struct rx_meta meta = {.ce = p->ce, .like_pumice = true};
    bare_gid(p->src, meta.src_gid);
    bare_gid(p->dst, meta.dst_gid);
    net->inflight--;
    if (pkt_decode(p->data, p->len, &k) == PKT_OK)
        engine_rx(e, &k, &meta, now);
    free(p);
}
