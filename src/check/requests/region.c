// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/region.h"

#include "src/check/base/inside.h"
#include "src/check/base/rule.h"
#include "src/check/connect/tables.h"
#include "src/check/objects/dead_keys.h"
#include "src/check/objects/guard.h"
#include "src/check/objects/records.h"

struct ibv_mr *region_made(struct ibv_mr *mr, const void *memory, size_t length, uint64_t iova, unsigned access,
                           const struct trace *where)
{
    inside_enter();
    bool may_guard = rule_is_on(RULE_TOUCH) && memory && guard_can((uintptr_t)memory, (uintptr_t)memory + length);
    inside_leave();

    records_lock();
    struct mr_record *r = record_add_mr(mr, where);
    if (r) {
        r->addr = iova;
        r->length = length;
        r->memory = (uintptr_t)memory;
        r->access = access;
        r->may_guard = may_guard;
        dead_keys_remove(mr->context, mr->lkey);
        tables_registered(r);
    }
    records_unlock();
    return mr;
}

void region_has_key(const struct ibv_mr *mr)
{
    records_lock();
    if (mr)
        dead_keys_remove(mr->context, mr->lkey);
    records_unlock();
}
