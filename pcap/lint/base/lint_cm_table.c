// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/base/lint_cm_table.h"

#include <stdlib.h>
#include <string.h>

static struct lint_cm_key make_key(const uint8_t active[16], const uint8_t passive[16], uint32_t id, bool sidr)
{
    struct lint_cm_key key = {.id = id, .sidr = sidr};

    memcpy(key.active, active, 16);
    memcpy(key.passive, passive, 16);
    return key;
}

struct lint_cm_conn *lint_cm_find(const struct lint_cm_table *t, const uint8_t active[16], const uint8_t passive[16],
                                  uint32_t id, bool sidr)
{
    struct lint_cm_key key = make_key(active, passive, id, sidr);
    struct lint_cm_conn *c;

    HASH_FIND(by_id, t->by_id, &key, sizeof(key), c);
    return c;
}

struct lint_cm_conn *lint_cm_find_tid(const struct lint_cm_table *t, const uint8_t active[16],
                                      const uint8_t passive[16], uint64_t tid)
{
    struct lint_cm_tid_key key = {.tid = tid};
    struct lint_cm_conn *c;

    memcpy(key.active, active, 16);
    memcpy(key.passive, passive, 16);
    HASH_FIND(by_tid, t->by_tid, &key, sizeof(key), c);
    return c;
}

struct lint_cm_conn *lint_cm_add(struct lint_cm_table *t, const struct lint_cm_key *key, uint64_t tid)
{
    struct lint_cm_conn *c = calloc(1, sizeof(*c));
    struct lint_cm_conn *old_id = lint_cm_find(t, key->active, key->passive, key->id, key->sidr);
    struct lint_cm_conn *old_tid = lint_cm_find_tid(t, key->active, key->passive, tid);

    if (!c)
        return NULL;
    if (old_id)
        HASH_DELETE(by_id, t->by_id, old_id);
    if (old_tid)
        HASH_DELETE(by_tid, t->by_tid, old_tid);
    c->key = *key;
    memcpy(c->tid_key.active, key->active, 16);
    memcpy(c->tid_key.passive, key->passive, 16);
    c->tid_key.tid = tid;
    HASH_ADD(by_id, t->by_id, key, sizeof(c->key), c);
    HASH_ADD(by_tid, t->by_tid, tid_key, sizeof(c->tid_key), c);
    c->next = t->all;
    t->all = c;
    return c;
}

struct lint_cm_qp *lint_cm_find_qp(const struct lint_cm_table *t, const uint8_t address[16], uint32_t qpn)
{
    struct lint_cm_qp_key key = {.qpn = qpn};
    struct lint_cm_qp *q;

    memcpy(key.address, address, 16);
    HASH_FIND(hh, t->qps, &key, sizeof(key), q);
    return q;
}

bool lint_cm_add_qp(struct lint_cm_table *t, const uint8_t address[16], uint32_t qpn, struct lint_cm_conn *conn,
                    enum lint_cm_side side)
{
    struct lint_cm_qp *q = lint_cm_find_qp(t, address, qpn);

    if (!q) {
        q = calloc(1, sizeof(*q));
        if (!q)
            return false;
        memcpy(q->key.address, address, 16);
        q->key.qpn = qpn;
        HASH_ADD(hh, t->qps, key, sizeof(q->key), q);
    }
    q->conn = conn;
    q->side = side;
    return true;
}

void lint_cm_table_free(struct lint_cm_table *t)
{
    struct lint_cm_qp *q, *next;

    HASH_ITER(hh, t->qps, q, next)
    {
        HASH_DELETE(hh, t->qps, q);
        free(q);
    }
    HASH_CLEAR(by_id, t->by_id);
    HASH_CLEAR(by_tid, t->by_tid);
    while (t->all) {
        struct lint_cm_conn *c = t->all;

        t->all = c->next;
        free(c);
    }
}
