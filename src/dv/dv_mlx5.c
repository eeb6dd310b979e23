// SPDX-License-Identifier: BSD-2-Clause
/* The functions of pumice/mlx5.h: conversions between layouts and the structures of mlx5dv. */
#include "pumice/mlx5.h"

#include <errno.h>
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))
#define LIST_INLINE 4u /* entries that fit into any request */
#define ENTRY_BYTES 16u

/* The pattern of an entry of an interleaved layout. */
struct pattern {
    uint64_t items, rounds; /* a round has repeat_count items */
    uint64_t distance; /* bytes from an item to the corresponding item of the next round */
};

/* Stores the lkey of the object of an entry. Returns 0, or EINVAL or EOPNOTSUPP. */
static int key_of(const struct pumice_mw_bind_layout_entry *e, uint32_t *lkey)
{
    if (e->mem_obj_type == PUMICE_MW_ENTRY_USE_MR && e->mr)
        *lkey = e->mr->lkey;
    else if (e->mem_obj_type == PUMICE_MW_ENTRY_USE_MW && e->mw)
        return pumice_mw_get_lkey(e->mw, lkey);
    else
        return EINVAL;
    return 0;
}

/* Is there room for num elements and, if they are interleaved, for the header? Returns 0 or ENOMEM. */
static int check_room(const struct pumice_mlx5_limits *limits, const struct pumice_mlx5_mkey *out, uint64_t num,
                      uint32_t header)
{
    uint64_t by_inline = limits ? limits->max_inline_data / ENTRY_BYTES : 0;

    if (num > out->max || num > UINT16_MAX)
        return ENOMEM;
    if (by_inline < LIST_INLINE)
        by_inline = LIST_INLINE;
    return limits && (num + header > limits->max_entries || num + header > by_inline) ? ENOMEM : 0;
}

/* Converts a composite layout. */
static int to_list(const struct pumice_mw_bind_layout *l, const struct pumice_mlx5_limits *limits,
                   struct pumice_mlx5_mkey *out)
{
    int rc = out->list ? check_room(limits, out, l->entry_count, 0) : ENOMEM;

    for (uint32_t i = 0; i < l->entry_count; i++) {
        const struct pumice_mw_bind_layout_entry *e = &l->entries[i];

        if (e->comp_mask || e->length == 0 || e->interleaved.dimension_count || e->interleaved.repeat_count > 1)
            return EINVAL;
        if (rc == 0 && e->length > UINT32_MAX)
            rc = ERANGE;
        if (rc)
            continue; /* go on: EINVAL of a later entry takes precedence */
        out->list[i] = (struct ibv_sge){.addr = e->addr, .length = (uint32_t)e->length};
        rc = key_of(e, &out->list[i].lkey);
    }
    if (rc == 0) {
        out->repeat_count = 0;
        out->num = (uint16_t)l->entry_count;
    }
    return rc;
}

/* --- interleaved ------------------------------------------------------------------------------ */

/* Checks an entry and computes its pattern. Returns 0 or EINVAL. */
static int read_pattern(const struct pumice_mw_bind_layout_entry *e, struct pattern *p)
{
    uint32_t ndim = e->interleaved.dimension_count;
    uint64_t repeat = e->interleaved.repeat_count, last;

    if (e->comp_mask || e->length == 0 || ndim == 0 || !e->interleaved.dimension || repeat == 0)
        return EINVAL;
    p->items = 1;
    for (uint32_t d = 0; d < ndim; d++)
        if (e->interleaved.dimension[d].count == 0 ||
            __builtin_mul_overflow(p->items, e->interleaved.dimension[d].count, &p->items))
            return EINVAL;
    if (__builtin_mul_overflow(p->items, e->length, &last))
        return EINVAL;
    p->rounds = p->items / repeat;
    return 0;
}

/* The offset of item k from the first item, in bytes. */
static uint64_t place(const struct pumice_mw_bind_layout_entry *e, uint64_t k)
{
    uint64_t at = 0;

    for (uint32_t d = 0; d < e->interleaved.dimension_count; d++) {
        const struct pumice_mw_dimension *dim = &e->interleaved.dimension[d];

        at += k % dim->count * dim->stride;
        k /= dim->count;
    }
    return at;
}

/* Stores in p the distance from each item to the corresponding item of the next round. Returns false if the distance
 * differs between items. Dimensions that continue each other count as one, merged dimension. The distance is the same
 * if each round ends at the end of all merged dimensions but the last. */
static bool find_distance(const struct pumice_mw_bind_layout_entry *e, struct pattern *p)
{
    const struct pumice_mw_dimension *dim = e->interleaved.dimension;
    /* inner: items of the merged dimensions before the current one. stride, count: the current merged dimension. */
    uint64_t inner = 1, stride = 0, count = 1;

    for (uint32_t d = 0; d < e->interleaved.dimension_count; d++) {
        uint64_t span;

        if (dim[d].count == 1)
            continue;
        if (count > 1 && !__builtin_mul_overflow(stride, count, &span) && span == dim[d].stride) {
            count *= dim[d].count;
            continue;
        }
        inner *= count;
        stride = dim[d].stride;
        count = dim[d].count;
    }
    if (p->rounds > 1 && e->interleaved.repeat_count % inner != 0)
        return false;
    p->distance = p->rounds > 1 ? place(e, e->interleaved.repeat_count) : e->length;
    return true;
}

/* Fills the elements of one entry: one for each item of a round. */
static int put_items(const struct pumice_mw_bind_layout_entry *e, const struct pattern *p,
                     struct mlx5dv_mr_interleaved *to)
{
    uint32_t lkey;
    int rc = key_of(e, &lkey);

    for (uint64_t k = 0; k < e->interleaved.repeat_count && rc == 0; k++)
        to[k] = (struct mlx5dv_mr_interleaved){.addr = e->addr + place(e, k),
                                               .bytes_count = (uint32_t)e->length,
                                               .bytes_skip = (uint32_t)(p->distance - e->length),
                                               .lkey = lkey};
    return rc;
}

/* Converts an interleaved layout. The first loop checks all entries, the second one fills the elements. */
static int to_interleaved(const struct pumice_mw_bind_layout *l, const struct pumice_mlx5_limits *limits,
                          struct pumice_mlx5_mkey *out)
{
    uint64_t rounds = 0, num = 0;
    struct pattern p;
    int rc = 0;

    for (uint32_t i = 0; i < l->entry_count; i++) {
        const struct pumice_mw_bind_layout_entry *e = &l->entries[i];
        uint64_t repeat = e->interleaved.repeat_count;
        int bad = read_pattern(e, &p);

        if (bad)
            return bad;
        rounds = i == 0 ? p.rounds : rounds;
        if (p.items % repeat || p.rounds != rounds || !find_distance(e, &p) || p.distance < e->length)
            rc = EOPNOTSUPP;
        if (rc == 0 && (e->length > UINT16_MAX || p.distance > UINT16_MAX || rounds > UINT32_MAX))
            rc = ERANGE;
        if (__builtin_add_overflow(num, repeat, &num))
            num = UINT64_MAX - repeat;
    }
    if (rc == 0)
        rc = out->interleaved ? check_room(limits, out, num, 1) : ENOMEM;
    num = 0;
    for (uint32_t i = 0; i < l->entry_count && rc == 0; i++) {
        const struct pumice_mw_bind_layout_entry *e = &l->entries[i];

        read_pattern(e, &p);
        find_distance(e, &p);
        rc = put_items(e, &p, out->interleaved + num);
        num += e->interleaved.repeat_count;
    }
    if (rc == 0) {
        out->repeat_count = (uint32_t)rounds;
        out->num = (uint16_t)num;
    }
    return rc;
}

EXPORT int pumice_layout_to_mlx5(const struct pumice_mw_bind_layout *layout, const struct pumice_mlx5_limits *limits,
                                 struct pumice_mlx5_mkey *out)
{
    if (!layout || layout->comp_mask || layout->entry_count == 0 || !layout->entries)
        return EINVAL;
    switch (layout->type) {
    case PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE:
        return to_list(layout, limits, out);
    case PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED:
        return to_interleaved(layout, limits, out);
    }
    return EINVAL;
}

/* --- from mlx5 -------------------------------------------------------------------------------- */

EXPORT int pumice_layout_from_mlx5(const struct pumice_mlx5_mkey *in, struct ibv_mr *const *mr, unsigned num_mr,
                                   struct pumice_mw_bind_layout *layout, struct pumice_mw_bind_layout_entry *entry,
                                   struct pumice_mw_dimension *dimension)
{
    if (in->num == 0)
        return EINVAL;
    for (unsigned i = 0; i < in->num; i++) {
        const struct mlx5dv_mr_interleaved *from = in->repeat_count ? &in->interleaved[i] : NULL;
        uint32_t lkey = from ? from->lkey : in->list[i].lkey;
        unsigned k = 0;

        while (k < num_mr && mr[k]->lkey != lkey)
            k++;
        entry[i] = (struct pumice_mw_bind_layout_entry){.mem_obj_type = PUMICE_MW_ENTRY_USE_MR,
                                                        .addr = from ? from->addr : in->list[i].addr,
                                                        .length = from ? from->bytes_count : in->list[i].length};
        if (k == num_mr || entry[i].length == 0)
            return EINVAL;
        entry[i].mr = mr[k];
        if (!from)
            continue;
        dimension[i] = (struct pumice_mw_dimension){.stride = (uint64_t)from->bytes_count + from->bytes_skip,
                                                    .count = in->repeat_count};
        entry[i].interleaved.repeat_count = 1;
        entry[i].interleaved.dimension_count = 1;
        entry[i].interleaved.dimension = &dimension[i];
    }
    *layout = (struct pumice_mw_bind_layout){.type = in->repeat_count ? PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED
                                                                      : PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE,
                                             .entry_count = in->num,
                                             .entries = entry};
    return 0;
}
