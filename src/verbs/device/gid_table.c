// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/device/gid_table.h"

#include <errno.h>
#include <string.h>

#include "src/verbs/device/query.h"
#include "src/verbs/session/call.h"

int vb_query_gid_entry(struct vb_context *c, uint32_t port, uint32_t index, struct pm_query_gid_rep *rep)
{
    struct pm_query_gid_req req = {.index = index};
    if (port != 1)
        return -EINVAL;
    return vb_call_simple(c, PM_OP_QUERY_GID, &req, sizeof(req), rep, sizeof(*rep));
}

VB_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct pm_query_gid_rep rep;
    int rc = index < 0 ? -EINVAL : vb_query_gid_entry(vb_ctx(context), port, (uint32_t)index, &rep);
    if (rc == -ENOENT) /* an empty entry reads as zeros, because programs read the whole table */
        memset(&rep, 0, sizeof(rep));
    else if (rc)
        return vb_err(rc), -1;
    memcpy(gid->raw, rep.gid, sizeof(gid->raw));
    return 0;
}

VB_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                                uint32_t flags, size_t entry_size)
{
    struct pm_query_gid_rep rep;
    if (flags)
        return vb_err(-EOPNOTSUPP);
    if (entry_size < sizeof(*entry))
        return vb_err(-EINVAL);
    int rc = vb_query_gid_entry(vb_ctx(context), port, index, &rep);
    if (rc)
        return vb_err(rc == -ENOENT ? -ENODATA : rc);
    memset(entry, 0, entry_size);
    memcpy(entry->gid.raw, rep.gid, sizeof(rep.gid));
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = rep.type;
    entry->ndev_ifindex = rep.ifindex;
    return 0;
}

VB_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
                                       uint32_t flags, size_t entry_size)
{
    struct ibv_port_attr port;
    if (flags)
        return -vb_err(-EOPNOTSUPP);
    int rc = vb_query_port(context, 1, &port, sizeof(port));
    if (rc)
        return -rc;
    size_t num = 0;
    for (int i = 0; i < port.gid_tbl_len; i++) {
        struct ibv_gid_entry entry;
        rc = _ibv_query_gid_ex(context, 1, (uint32_t)i, &entry, 0, sizeof(entry));
        if (rc == ENODATA)
            continue;
        if (rc == 0 && (num == max_entries || entry_size < sizeof(entry)))
            rc = EINVAL;
        if (rc)
            return -vb_err(-rc);
        void *to = (char *)entries + num++ * entry_size;
        memset(to, 0, entry_size);
        memcpy(to, &entry, sizeof(entry));
    }
    return (ssize_t)num;
}
