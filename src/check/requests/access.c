// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/access.h"

#include <inttypes.h>

#include "src/check/base/finding.h"
#include "src/check/objects/records.h"

static bool is_inside(const struct ibv_sge *sge, const struct mr_record *mr)
{
    uint64_t offset = sge->addr - mr->addr;

    return sge->addr >= mr->addr && offset <= mr->length && sge->length <= mr->length - offset;
}

static void check(const struct request *r, const struct ibv_sge *sge, const struct mr_record *mr, bool writes)
{
    const struct finding_place place = {.where = r->where, .other = mr->r.where, .whose = "the region was registered"};

    if (!is_inside(sge, mr))
        finding_add(RULE_ACCESS, &place,
                    "the %s with wr_id %" PRIu64 " names %u bytes at 0x%" PRIx64
                    ", which are not all in the region with lkey 0x%x: it has %" PRIu64 " bytes at 0x%" PRIx64,
                    request_kind(r->opcode), r->wr_id, sge->length, sge->addr, sge->lkey, mr->length, mr->addr);
    else if (writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
        finding_add(RULE_ACCESS, &place,
                    "the %s with wr_id %" PRIu64
                    " fills memory of the region with lkey 0x%x, which was registered without IBV_ACCESS_LOCAL_WRITE",
                    request_kind(r->opcode), r->wr_id, sge->lkey);
}

void access_locate(struct request *r, const struct ibv_context *context, bool writes)
{
    r->may_guard = writes && rule_is_on(RULE_TOUCH);
    for (unsigned i = 0; i < r->num_sge; i++) {
        struct ibv_sge *sge = &r->sge[i];
        const struct mr_record *mr = record_of_lkey(context, sge->lkey);

        if (mr && sge->length && rule_is_on(RULE_ACCESS))
            check(r, sge, mr, writes);
        if (mr && mr->memory && is_inside(sge, mr))
            sge->addr = mr->memory + (sge->addr - mr->addr);
        else
            sge->addr = 0;
        r->may_guard = r->may_guard && mr && mr->may_guard;
    }
    request_lend(r);
}
