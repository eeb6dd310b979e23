// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/request.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#include "src/check/objects/guard.h"
#include "src/check/objects/lent.h"
#include "src/check/objects/watch.h"

#define TARGET_WATCHES 3u

/* Memory that the device may write. Targets in the tree don't overlap. */
struct target {
    RB_ENTRY(target) node;
    uint64_t from, to; /* to: behind the last byte */
    const struct request *request; /* NULL: it is not in the tree */
    struct guard guard;
    struct watch watches[TARGET_WATCHES]; /* of what the guard leaves out */
};

static int compare(const struct target *a, const struct target *b)
{
    return a->from < b->from ? -1 : a->from > b->from;
}

RB_HEAD(target_tree, target);
RB_PROTOTYPE_INTERNAL(target_tree, target, node, compare, static __attribute__((unused)))
RB_GENERATE_INTERNAL(target_tree, target, node, compare, static __attribute__((unused)))
static struct target_tree tree = RB_INITIALIZER(&tree);

/* The first target that ends behind from, and begins before to. */
static struct target *overlapping(uint64_t from, uint64_t to)
{
    struct target key = {.from = from}, *at = RB_NFIND(target_tree, &tree, &key);
    struct target *before = at ? RB_PREV(target_tree, &tree, at) : RB_MAX(target_tree, &tree);

    if (before && before->to > from)
        return before;
    return at && at->from < to ? at : NULL;
}

/* The program may not touch the target (RULE_TOUCH). A READ or an atomic is done soon, but a receive request may stay for the
 * life of the program. */
static void forbid(struct target *t)
{
    enum watch_rank rank = t->request->opcode == OPCODE_RECV ? WATCH_RECEIVE : WATCH_SOON;

    if (t->request->may_guard)
        guard_set(&t->guard, t->from, t->to);
    if (t->guard.from < t->guard.to) {
        watch_first(&t->watches[0], t->from, t->guard.from, rank);
        watch_last(&t->watches[1], t->guard.to, t->to, rank);
    } else {
        watch_first(&t->watches[0], t->from, t->to, rank);
        watch_last(&t->watches[1], t->from, t->to, rank);
        watch_inner(&t->watches[2], t->from, t->to);
    }
}

static void forbid_no_longer(struct target *t)
{
    guard_lift(&t->guard);
    for (unsigned i = 0; i < TARGET_WATCHES; i++)
        watch_lift(&t->watches[i]);
}

struct request *request_add(struct request_queue *q, const struct request *like, const struct ibv_sge *list, unsigned n)
{
    struct request *r = malloc(sizeof(*r) + n * sizeof(*list));

    if (!r)
        return NULL;
    *r = *like;
    r->may_guard = r->lent = false;
    r->sent = (struct fingerprint){0};
    r->targets = NULL;
    r->num_sge = n;
    if (n)
        memcpy(r->sge, list, n * sizeof(*list));
    TAILQ_INSERT_TAIL(q, r, link);
    return r;
}

void request_forget_memory(struct request *r)
{
    for (unsigned i = 0; r->targets && i < r->num_sge; i++) {
        forbid_no_longer(&r->targets[i]);
        if (r->targets[i].request)
            RB_REMOVE(target_tree, &tree, &r->targets[i]);
    }
    free(r->targets);
    r->targets = NULL;
    if (r->lent)
        lent_remove(r->sge, r->num_sge);
    r->lent = false;
    fingerprint_drop(&r->sent);
    for (unsigned i = 0; i < r->num_sge; i++)
        r->sge[i].addr = 0;
}

void request_remove(struct request_queue *q, struct request *r)
{
    TAILQ_REMOVE(q, r, link);
    request_forget_memory(r);
    free(r);
}

void request_remove_all(struct request_queue *q)
{
    struct request *r;

    while ((r = TAILQ_FIRST(q)))
        request_remove(q, r);
}

void request_lend(struct request *r)
{
    lent_add(r->sge, r->num_sge);
    r->lent = true;
}

struct request *request_find(const struct request_queue *q, uint64_t wr_id)
{
    struct request *r;

    TAILQ_FOREACH (r, q, link) {
        if (r->wr_id == wr_id)
            break;
    }
    return r;
}

const struct request *request_add_targets(struct request *r)
{
    const struct request *other = NULL;

    r->targets = calloc(r->num_sge ? r->num_sge : 1, sizeof(*r->targets));
    for (unsigned i = 0; r->targets && i < r->num_sge; i++) {
        struct target *t = &r->targets[i], *found;

        t->from = r->sge[i].addr;
        t->to = t->from + r->sge[i].length;
        if (t->from == t->to || !r->sge[i].addr)
            continue;
        found = overlapping(t->from, t->to);
        if (found) {
            other = found->request;
            continue;
        }
        t->request = r;
        RB_INSERT(target_tree, &tree, t);
        forbid(t);
    }
    return other;
}

const struct request *request_writing(const struct ibv_sge *sge)
{
    const struct target *t = sge->length && sge->addr ? overlapping(sge->addr, sge->addr + sge->length) : NULL;

    return t ? t->request : NULL;
}

const struct request *request_lift(uint64_t address, uint64_t *offset)
{
    struct target *t = overlapping(address, address + 1);

    if (!t || address < t->guard.from || address >= t->guard.to)
        return NULL;
    *offset = address - t->from;
    guard_lift(&t->guard);
    return t->request;
}

const struct request *request_lift_word(uint64_t word, uint64_t *offset, unsigned *bytes)
{
    struct target *t = overlapping(word, word + 1);

    for (unsigned i = 0; t && i < TARGET_WATCHES; i++) {
        struct watch *w = &t->watches[i];

        if (!w->slot || w->word != word)
            continue;
        *offset = word - t->from;
        *bytes = w->bytes;
        watch_lift(w);
        return t->request;
    }
    return NULL;
}

const char *request_kind(int opcode)
{
    switch (opcode) {
    case OPCODE_RECV:
        return "receive request";
    case IBV_WR_RDMA_READ:
        return "RDMA READ";
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return "RDMA WRITE";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return "atomic";
    default:
        return "SEND";
    }
}
