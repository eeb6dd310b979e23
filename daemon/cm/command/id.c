// SPDX-License-Identifier: BSD-2-Clause
/* Creating and destroying IDs, and moving them to another channel. */
#include <errno.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/core/cm/cm.h"

/* -EINVAL: another port space. */
static int qp_type_of(const struct rdma_ucm_create_id *in, uint8_t *qp_type)
{
    switch (in->ps) {
    case CM_PS_TCP:
        *qp_type = QPT_RC;
        return 0;
    case CM_PS_UDP:
    case CM_PS_IPOIB:
        *qp_type = QPT_UD;
        return 0;
    case CM_PS_IB:
        *qp_type = in->qp_type;
        return 0;
    default:
        return -EINVAL;
    }
}

int command_create_id(struct command *c)
{
    const struct rdma_ucm_create_id *in = &c->in.create_id;
    struct rdma_ucm_create_id_resp resp;
    char why[QUOTA_WHY_MAX];
    struct ucma_id *id;
    struct cm_id *cm;
    uint8_t qp_type;

    if (c->out_max < sizeof(resp))
        return -ENOSPC;
    int rc = qp_type_of(in, &qp_type);
    if (rc == 0)
        rc = cm_id_create(c->host->cm, in->ps, qp_type, NULL, &cm);
    if (rc)
        return rc;
    rc = ucma_id_create(c->channel, cm, in->uid, &id, why);
    if (rc) {
        cm_id_destroy(cm, c->now);
        return control_fail(c->rp, rc, "%s", why);
    }
    cm_id_set_owner(cm, id);
    resp.id = id->number;
    return command_result(c, &resp, sizeof(resp));
}

int command_destroy_id(struct command *c)
{
    struct rdma_ucm_destroy_id_resp resp;
    struct ucma_id *id;

    if (c->out_max < sizeof(resp))
        return -ENOSPC;
    int rc = command_id(c, c->in.destroy_id.id, &id);
    if (rc)
        return rc;
    resp.events_reported = ucma_id_destroy(id, c->now);
    return command_result(c, &resp, sizeof(resp));
}

/* The channel that has the ID is in the extra bytes, and the command is sent for the channel that gets it. */
int command_migrate_id(struct command *c)
{
    struct rdma_ucm_migrate_resp resp;
    struct cm_channel *from;
    struct ucma_id *id;
    uint64_t token;

    if (c->out_max < sizeof(resp))
        return -ENOSPC;
    if (c->extra_len != sizeof(token))
        return -EINVAL;
    memcpy(&token, c->extra, sizeof(token));
    from = cm_channel_find(c->host, c->channel->owner.uid, token);
    int rc = from ? ucma_id_find(from, c->in.migrate_id.id, &id) : -ENOENT;
    if (rc)
        return rc;
    ucma_id_move(id, c->channel);
    resp.events_reported = id->reported;
    return command_result(c, &resp, sizeof(resp));
}
