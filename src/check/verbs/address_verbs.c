// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/address_verbs.h"

#include "src/check/base/next.h"
#include "src/check/base/report.h"
#include "src/check/base/trace.h"
#include "src/check/connect/asked.h"
#include "src/check/connect/connect.h"
#include "src/check/objects/records.h"
#include "src/check/verbs/export.h"

/* --- GIDs -------------------------------------------------------------------------------------- */

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    records_lock();
    asked_gid(context, index);
    records_unlock();
    return NEXT(ibv_query_gid, context, port, index, gid);
}

static void looked_at_types(void)
{
    records_lock();
    asked_gid_types();
    records_unlock();
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                             uint32_t flags, size_t size)
{
    looked_at_types();
    return NEXT(_ibv_query_gid_ex, context, port, index, entry, flags, size);
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most,
                                    uint32_t flags, size_t size)
{
    looked_at_types();
    return NEXT(_ibv_query_gid_table, context, entries, most, flags, size);
}

/* --- address handles --------------------------------------------------------------------------- */

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    const struct trace *where = TRACE_HERE;

    connect_made_ah(pd->context, attr, where);
    struct ibv_ah *ah = NEXT(ibv_create_ah, pd, attr);
    export_made(KIND_AH, ah, where);
    return ah;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah *ah = NEXT(ibv_create_ah_from_wc, pd, wc, grh, port);

    export_made(KIND_AH, ah, TRACE_HERE);
    return ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    int rc = NEXT(ibv_destroy_ah, ah);

    export_destroyed(KIND_AH, ah, rc, TRACE_HERE);
    return rc;
}
