// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/pairs.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/check/base/rule.h"

/* A connection, and the process that has it. */
struct end {
    struct report *of;
    const struct report_connection *is;
};

/* --- findings ---------------------------------------------------------------------------------- */

static int add(struct report *r, enum rule rule, struct report_finding f, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int add(struct report *r, enum rule rule, struct report_finding f, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(f.text, sizeof(f.text), format, ap);
    va_end(ap);
    f.count = 1;
    snprintf(f.rule, sizeof(f.rule), "%s", rule_name(rule));
    return report_add_finding(r, &f);
}

/* --- ends -------------------------------------------------------------------------------------- */

static bool is_peer(const struct report_connection *a, const struct report_connection *b)
{
    return b->qpn == a->peer && b->type == a->type && strcmp(b->gid, a->peer_gid) == 0;
}

/* The numbers of queue pairs are used again. The other end of a connection was connected at about the same time, and to
 * this one, if there is such a one. Its member is is NULL if there is none. */
static struct end peer_of(const struct reports *all, const struct report_connection *a)
{
    struct end best = {0};
    uint64_t best_distance = 0;
    bool best_mutual = false;

    for (size_t i = 0; i < all->n; i++) {
        struct report *r = &all->list[i];

        for (size_t k = 0; k < r->n_connections; k++) {
            const struct report_connection *b = &r->connections[k];
            uint64_t distance = a->since > b->since ? a->since - b->since : b->since - a->since;
            bool mutual = is_peer(b, a);

            if (!is_peer(a, b) ||
                (best.is && (best_mutual > mutual || (best_mutual == mutual && best_distance <= distance))))
                continue;
            best = (struct end){r, b};
            best_distance = distance;
            best_mutual = mutual;
        }
    }
    return best;
}

/* --- attributes -------------------------------------------------------------------------------- */

/* Appends to a list of differences. */
static void differ(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void differ(char *text, size_t size, const char *format, ...)
{
    size_t n = strlen(text);
    va_list ap;

    n += (size_t)snprintf(text + n, size - n, "%s", n ? "; " : "");
    va_start(ap, format);
    vsnprintf(text + (n < size ? n : size - 1), n < size ? size - n : 1, format, ap);
    va_end(ap);
}

static unsigned mtu_bytes(unsigned mtu)
{
    return mtu >= 1 && mtu <= 5 ? 128u << mtu : 0;
}

/* Compares the attributes with which a sends to those that b expects. */
static void compare_direction(const struct report_connection *a, const struct report_connection *b, char *text,
                              size_t size)
{
    if (!a->ready_at) /* it sends nothing */
        return;
    if (a->sq_psn != b->rq_psn)
        differ(text, size, "0x%x begins with PSN %u (sq_psn), 0x%x expects %u (rq_psn)", a->qpn, a->sq_psn, b->qpn,
               b->rq_psn);
    if (a->rd_atomic > b->dest_rd_atomic)
        differ(text, size,
               "0x%x may have %u READs and atomics outstanding (max_rd_atomic), 0x%x takes %u (max_dest_rd_atomic)",
               a->qpn, a->rd_atomic, b->qpn, b->dest_rd_atomic);
}

static int compare(const struct end *a, const struct end *b)
{
    const struct report_finding f = {
        .where = a->is->where, .other = b->is->where, .other_pid = b->of->pid, .whose = "the peer was connected"};
    char text[400] = "";

    if (!is_peer(b->is, a->is))
        return add(a->of, RULE_MISMATCH, f, "QP 0x%x is connected to 0x%x, but that one is connected to 0x%x",
                   a->is->qpn, b->is->qpn, b->is->peer);
    /* Each pair once. */
    if (b->of->pid < a->of->pid || (b->of->pid == a->of->pid && b->is->qpn < a->is->qpn))
        return 0;
    if (a->is->path_mtu != b->is->path_mtu)
        differ(text, sizeof(text), "path_mtu is %u and %u", mtu_bytes(a->is->path_mtu), mtu_bytes(b->is->path_mtu));
    compare_direction(a->is, b->is, text, sizeof(text));
    if (a->is != b->is)
        compare_direction(b->is, a->is, text, sizeof(text));
    if (!text[0])
        return 0;
    return add(a->of, RULE_MISMATCH, f, "QP 0x%x and its peer 0x%x do not fit: %s", a->is->qpn, b->is->qpn, text);
}

/* --- refused requests -------------------------------------------------------------------------- */

/* The right that the peer must give. NULL: the request needs none. */
static const char *right_of(unsigned opcode, unsigned *right, const char **kind)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        *right = IBV_ACCESS_REMOTE_WRITE;
        *kind = "RDMA WRITE";
        return "IBV_ACCESS_REMOTE_WRITE";
    case IBV_WR_RDMA_READ:
        *right = IBV_ACCESS_REMOTE_READ;
        *kind = "RDMA READ";
        return "IBV_ACCESS_REMOTE_READ";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        *right = IBV_ACCESS_REMOTE_ATOMIC;
        *kind = "atomic";
        return "IBV_ACCESS_REMOTE_ATOMIC";
    default:
        return NULL;
    }
}

/* The latest region of a remote key that was registered before. NULL: none. */
static const struct report_region *region_of(const struct end *b, const struct report_failure *e)
{
    const struct report_region *found = NULL;

    for (size_t i = 0; i < b->of->n_regions; i++) {
        const struct report_region *g = &b->of->regions[i];

        if (g->context == b->is->context && g->rkey == e->rkey && g->since <= e->time)
            found = g;
    }
    return found;
}

static int explain(const struct end *a, const struct end *b, const struct report_failure *e)
{
    struct report_finding f = {.where = e->where, .other_pid = b->of->pid};
    const char *kind, *name;
    unsigned right;

    name = right_of(e->opcode, &right, &kind);
    if (!name)
        return 0;
    if (!(b->is->access & right)) {
        f.other = b->is->access_at;
        strcpy(f.whose, "the peer set its access flags");
        return add(a->of, RULE_ACCESS, f,
                   "the peer refused the %s with wr_id %" PRIu64 ": its QP 0x%x lacks %s (qp_access_flags)", kind,
                   e->wr_id, b->is->qpn, name);
    }
    const struct report_region *g = region_of(b, e);
    if (!g)
        return 0; /* maybe the key of a memory window */
    f.other = g->where;
    strcpy(f.whose, "the peer registered the region");
    if (g->until && g->until < e->time) {
        f.other = g->gone_at;
        strcpy(f.whose, "the peer deregistered the region");
        return add(a->of, RULE_DEAD_KEY, f,
                   "the peer refused the %s with wr_id %" PRIu64 ": it had deregistered the region with rkey 0x%x",
                   kind, e->wr_id, e->rkey);
    }
    if (!(g->access & right))
        return add(a->of, RULE_ACCESS, f,
                   "the peer refused the %s with wr_id %" PRIu64
                   ": the region with rkey 0x%x was registered without %s",
                   kind, e->wr_id, e->rkey, name);
    uint64_t offset = e->addr - g->addr;
    if (e->addr < g->addr || offset > g->length || e->length > g->length - offset)
        return add(a->of, RULE_ACCESS, f,
                   "the peer refused the %s with wr_id %" PRIu64 ": it needs %" PRIu64 " bytes at 0x%" PRIx64
                   ", the region with rkey 0x%x has %" PRIu64 " bytes at 0x%" PRIx64,
                   kind, e->wr_id, e->length, e->addr, e->rkey, g->length, g->addr);
    return 0;
}

/* The connection that the request belonged to. NULL: unknown. */
static const struct report_connection *connection_of(const struct report *r, const struct report_failure *e)
{
    const struct report_connection *found = NULL;

    for (size_t i = 0; i < r->n_connections; i++) {
        const struct report_connection *c = &r->connections[i];

        if (c->context == e->context && c->qpn == e->qpn && c->since <= e->time)
            found = c;
    }
    return found;
}

static int explain_all(struct reports *all, struct report *r)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->n_failures; i++) {
        const struct report_failure *e = &r->failures[i];
        struct end a = {r, connection_of(r, e)}, b = {0};

        if (a.is && (e->status == IBV_WC_REM_ACCESS_ERR || e->status == IBV_WC_REM_INV_REQ_ERR))
            b = peer_of(all, a.is);
        if (b.is)
            rc = explain(&a, &b, e);
    }
    return rc;
}

int pairs_compare(struct reports *all)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < all->n; i++) {
        struct report *r = &all->list[i];

        for (size_t k = 0; rc == 0 && k < r->n_connections && rule_is_on(RULE_MISMATCH); k++) {
            struct end a = {r, &r->connections[k]}, b = peer_of(all, a.is);

            rc = b.is ? compare(&a, &b) : 0;
        }
        if (rc == 0 && (rule_is_on(RULE_ACCESS) || rule_is_on(RULE_DEAD_KEY)))
            rc = explain_all(all, r);
    }
    return rc;
}
