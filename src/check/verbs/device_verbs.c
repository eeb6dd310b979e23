// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/device_verbs.h"

#include "src/check/base/next.h"
#include "src/check/base/trace.h"
#include "src/check/objects/records.h"
#include "src/check/requests/context.h"
#include "src/check/verbs/export.h"

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *context = NEXT(ibv_open_device, device);

    context_opened(context, TRACE_HERE);
    return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
    context_closing(context);
    int rc = NEXT(ibv_close_device, context);
    if (rc)
        context_not_closed(context);
    export_destroyed(KIND_CONTEXT, context, rc, TRACE_HERE);
    return rc;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = NEXT(ibv_alloc_pd, context);

    export_made(KIND_PD, pd, TRACE_HERE);
    return pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    int rc = NEXT(ibv_dealloc_pd, pd);

    export_destroyed(KIND_PD, pd, rc, TRACE_HERE);
    return rc;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel = NEXT(ibv_create_comp_channel, context);

    export_made(KIND_CHANNEL, channel, TRACE_HERE);
    return channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    int rc = NEXT(ibv_destroy_comp_channel, channel);

    export_destroyed(KIND_CHANNEL, channel, rc, TRACE_HERE);
    return rc;
}
