// SPDX-License-Identifier: BSD-2-Clause
/* The GID table of a port: ibv_query_gid, and the functions behind ibv_query_gid_ex and ibv_query_gid_table. The daemon
 * has the table, so each query is a control request. */
#ifndef PUMICE_SRC_VERBS_DEVICE_GID_TABLE_H
#define PUMICE_SRC_VERBS_DEVICE_GID_TABLE_H

#include "src/verbs/session/context.h"

/* Reads an entry of the GID table. 0 or -errno: -ENOENT if the entry is empty, -EINVAL if the port or the entry does
 * not exist. */
int vb_query_gid_entry(struct vb_context *c, uint32_t port, uint32_t index, struct pm_query_gid_rep *rep);

#endif
