// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/comm_id.h"

#define TWEAK_LOW 0x10000u /* of the lower 24 bits: one permutation for each value of the upper 8 */
#define TWEAK_HIGH 0x20000u /* of the upper 8 bits */

static uint32_t buckets_for(uint32_t max_nodes)
{
    uint32_t n = 64;
    while (n < max_nodes)
        n *= 2;
    return n;
}

size_t comm_table_size(uint32_t max_nodes)
{
    return sizeof(struct comm_node *) * buckets_for(max_nodes);
}

void comm_table_init(struct comm_table *t, void *mem, uint32_t max_nodes, const struct permute_secret *secret)
{
    *t = (struct comm_table){.bucket = mem, .mask = buckets_for(max_nodes) - 1, .secret = *secret};
}

/* Multiplies with a secret odd number, once for each word. */
static uint32_t bucket_of(const struct comm_table *t, const struct comm_key *k)
{
    const uint64_t word[3] = {k->a, k->b, (uint64_t)k->kind << 32 | k->number};
    uint64_t h = t->secret.word[0];
    for (int i = 0; i < 3; i++) {
        h = (h ^ word[i]) * (t->secret.word[1] | 1) + 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
        h *= 0xbf58476d1ce4e5b9u;
        h ^= h >> 32;
    }
    return (uint32_t)h & t->mask;
}

static bool same(const struct comm_key *x, const struct comm_key *y)
{
    return x->number == y->number && x->kind == y->kind && x->a == y->a && x->b == y->b;
}

struct comm_node *comm_table_find(const struct comm_table *t, const struct comm_key *key)
{
    struct comm_node *n = t->bucket[bucket_of(t, key)];
    while (n && !same(&n->key, key))
        n = n->next;
    return n;
}

bool comm_table_insert(struct comm_table *t, struct comm_node *n, const struct comm_key *key)
{
    if (comm_table_find(t, key))
        return false;
    struct comm_node **head = &t->bucket[bucket_of(t, key)];
    n->key = *key;
    n->next = *head;
    *head = n;
    t->used++;
    return true;
}

void comm_table_remove(struct comm_table *t, struct comm_node *n)
{
    if (!n->key.kind)
        return;
    struct comm_node **at = &t->bucket[bucket_of(t, &n->key)];
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    n->next = NULL;
    n->key.kind = 0;
    t->used--;
}

/* Numbers of 32 bits in a secret order. */
static uint32_t scramble(const struct permute_secret *secret, uint32_t n)
{
    uint32_t high = n >> 24;
    return permute(secret, TWEAK_HIGH, 8, high) << 24 | permute(secret, TWEAK_LOW + high, 24, n & 0xffffff);
}

uint32_t comm_table_new_id(struct comm_table *t)
{
    struct comm_key key = {.kind = COMM_LOCAL};
    do {
        key.number = scramble(&t->secret, ++t->next_id);
    } while (key.number == 0 || comm_table_find(t, &key));
    return key.number;
}
