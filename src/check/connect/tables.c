// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/connect/tables.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/check/base/report.h"
#include "src/check/base/rule.h"
#include "src/check/connect/peers.h"

static bool wanted(void)
{
    return report_wanted() && (rule_is_on(RULE_MISMATCH) || rule_is_on(RULE_ACCESS) || rule_is_on(RULE_DEAD_KEY));
}

static void print_gid(const union ibv_gid *gid, char text[33])
{
    for (unsigned i = 0; i < sizeof(gid->raw); i++)
        snprintf(text + 2 * i, 3, "%02x", gid->raw[i]);
}

void tables_connection(const struct qp_record *q)
{
    const struct connection *c = &q->connection;
    char gid[33], peer_gid[33];

    if (!wanted() || (q->qp->qp_type != IBV_QPT_RC && q->qp->qp_type != IBV_QPT_UC))
        return;
    print_gid(&c->gid, gid);
    print_gid(&c->peer_gid, peer_gid);
    report_line("Q\t%" PRIuPTR "\t%u\t%d\t%u\t%d\t%u\t%u\t%u\t%u\t%u\t%" PRIu64 "\t%u\t%u\t%u\t%s\t%s\n",
                (uintptr_t)q->qp->context, q->qp->qp_num, (int)q->qp->qp_type, c->peer, (int)c->path_mtu, c->rq_psn,
                c->dest_rd_atomic, c->access, c->sq_psn, c->rd_atomic, c->since, report_trace(c->where),
                report_trace(c->ready_at), report_trace(c->access_at), gid, peer_gid);
}

void tables_registered(const struct mr_record *mr)
{
    const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    if (wanted())
        report_line("R\t%" PRIu64 "\t%" PRIuPTR "\t%u\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\n", peers_now(),
                    (uintptr_t)mr->key.context, mr->rkey, mr->addr, mr->length,
                    mr->access & (remote | IBV_ACCESS_LOCAL_WRITE), report_trace(mr->r.where));
}

void tables_deregistered(const struct mr_record *mr, const struct trace *where)
{
    if (wanted())
        report_line("U\t%" PRIu64 "\t%" PRIuPTR "\t%u\t%u\n", peers_now(), (uintptr_t)mr->key.context, mr->rkey,
                    report_trace(where));
}

void tables_failed(const struct qp_record *q, const struct request *r, enum ibv_wc_status status)
{
    uint64_t length = 0;

    if (!wanted() || r->opcode < 0)
        return;
    for (unsigned i = 0; i < r->num_sge; i++)
        length += r->sge[i].length;
    report_line("E\t%" PRIu64 "\t%" PRIuPTR "\t%u\t%d\t%d\t%" PRIu64 "\t%u\t%" PRIu64 "\t%" PRIu64 "\t%u\n",
                peers_now(), (uintptr_t)q->qp->context, q->qp->qp_num, (int)status, r->opcode, r->wr_id, r->rkey,
                r->remote_addr, length, report_trace(r->where));
}
