// SPDX-License-Identifier: BSD-2-Clause
/* Options of IDs. */
#include <errno.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/core/cm/cm.h"

/* clang-format off */
static const struct {
    uint32_t size; /* bytes of the value */
    enum cm_option option;
    bool is_switch; /* any value but 0 means on */
} id_options[] = {
    [RDMA_OPTION_ID_TOS]         = {sizeof(uint8_t), CM_OPTION_TOS,         false},
    [RDMA_OPTION_ID_REUSEADDR]   = {sizeof(int),     CM_OPTION_REUSEADDR,   true},
    [RDMA_OPTION_ID_AFONLY]      = {sizeof(int),     CM_OPTION_AFONLY,      true},
    [RDMA_OPTION_ID_ACK_TIMEOUT] = {sizeof(uint8_t), CM_OPTION_ACK_TIMEOUT, false},
};
/* clang-format on */

static int set_id_option(struct command *c, struct ucma_id *id, uint32_t name)
{
    uint32_t value = 0;

    if (name >= sizeof(id_options) / sizeof(id_options[0]))
        return -ENOSYS;
    if (c->extra_len != id_options[name].size)
        return -EINVAL;
    if (id_options[name].size == 1)
        value = c->extra[0];
    else
        memcpy(&value, c->extra, sizeof(value));
    return cm_set_option(id->cm, id_options[name].option, id_options[name].is_switch ? value != 0 : value);
}

/* The program brings the path itself, so the route is resolved with it. RoCE has one path to an address, whatever the
 * record says. */
static int set_ib_path(struct command *c, struct ucma_id *id)
{
    struct ucma_path_data p;

    if (c->extra_len % sizeof(p))
        return -EINVAL;
    for (uint32_t at = 0; at < c->extra_len; at += (uint32_t)sizeof(p)) {
        memcpy(&p, c->extra + at, sizeof(p));
        if (p.flags == UCMA_PATH_FLAGS)
            return cm_resolve_route(id->cm);
    }
    return -EINVAL;
}

int command_set_option(struct command *c)
{
    const struct rdma_ucm_set_option *in = &c->in.set_option;
    struct ucma_id *id;

    int rc = command_id(c, in->id, &id);
    if (rc)
        return rc;
    if (in->optlen != c->extra_len)
        return -EINVAL;
    if (in->level == RDMA_OPTION_ID)
        return set_id_option(c, id, in->optname);
    if (in->level == RDMA_OPTION_IB && in->optname == RDMA_OPTION_IB_PATH)
        return set_ib_path(c, id);
    return -ENOSYS;
}
