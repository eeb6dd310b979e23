// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: connection management of two hosts, whose clients send any commands, and whose network changes bytes of
 * MADs and makes up others. Nothing is left when the clients have gone. */
#include <stdlib.h>

#include "daemon/base/log.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/daemon/cm/cm_fixture.h"

#define STEPS_MAX 200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Ports and addresses that meet each other often. */
static struct sockaddr_in address(struct input *in)
{
    static const char *const ip[] = {"127.0.0.1", "127.0.0.2", "0.0.0.0", "239.1.2.3"};
    uint32_t v = take(in, 1);

    return cm_sockaddr(ip[v & 3], (uint16_t)(v >> 2 & 3 ? 7470 + (v >> 2 & 3) : 0));
}

/* A command that may well succeed. */
static void likely_command(struct cm_node *n, struct input *in)
{
    static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_TCP};
    uint32_t kind = take(in, 1), id = take(in, 1) % 12 + 1;
    struct sockaddr_in a = address(in), b = address(in);
    uint8_t out[512];

    switch (kind % 10) {
    case 0:
        cm_create(n, spaces[id & 3], kind >> 7);
        break;
    case 1:
        cm_destroy(n, id);
        break;
    case 2:
        cm_bind_to(n, id, &a, sizeof(a));
        break;
    case 3:
        cm_listen_on(n, id, kind & 32 ? 1 : 0);
        break;
    case 4: {
        struct rdma_ucm_resolve_addr r = {.id = id, .src_size = sizeof(a), .dst_size = sizeof(b)};

        memcpy(&r.src_addr, &a, sizeof(a));
        memcpy(&r.dst_addr, &b, sizeof(b));
        cm_command(n, RDMA_USER_CM_CMD_RESOLVE_ADDR, &r, sizeof(r), NULL, 0);
        break;
    }
    case 5:
        cm_route(n, id);
        break;
    case 6:
        cm_connect_id(n, id, kind, "x");
        break;
    case 7:
        cm_accept_id(n, id, id, kind, "y");
        break;
    case 8: {
        struct rdma_ucm_disconnect d = {id};

        cm_command(n, RDMA_USER_CM_CMD_DISCONNECT, &d, sizeof(d), NULL, 0);
        break;
    }
    default: {
        struct rdma_ucm_init_qp_attr q = {.id = id, .qp_state = kind & 7};

        cm_command(n, RDMA_USER_CM_CMD_INIT_QP_ATTR, &q, sizeof(q), out, sizeof(out));
        break;
    }
    }
}

/* A command with any bytes; the ID, which stands at different places, is small. */
static void any_command(struct cm_node *n, struct input *in)
{
    uint8_t bytes[PM_CM_IN_MAX] = {0}, extra[80], out[PM_CM_OUT_MAX];
    uint32_t cmd = take(in, 1) % (UCMA_CMDS + 1), size = take(in, 1) * 4, room = take(in, 1) * 8;
    uint32_t at = take(in, 1) & 1 ? 8 : 0, more = take(in, 1) % sizeof(extra);

    for (uint32_t i = 0; i < size && in->len; i++)
        bytes[i] = (uint8_t)take(in, 1);
    memcpy(bytes + at, &(uint32_t){take(in, 1) % 12 + 1}, sizeof(uint32_t));
    memset(extra, (int)take(in, 1), sizeof(extra));
    cm_command_extra(n, n->channel, cmd, bytes, size, extra, more, out, room);
}

/* Carries one MAD, after some of its bytes were changed. */
static void damaged(struct cm_node *from, struct cm_node *to, struct input *in)
{
    struct cm_datagram d;

    if (!mad_box_next_to_send(&from->box, &d))
        return;
    for (uint32_t n = take(in, 1) % 8; n > 0; n--) {
        uint32_t at = take(in, 1) % MAD_LEN;

        d.mad[at] = (uint8_t)take(in, 1);
    }
    memcpy(d.local_gid, to->box.device.gids[0], sizeof(d.local_gid));
    memcpy(d.remote_gid, from->box.device.gids[0], sizeof(d.remote_gid));
    d.sgid_index = 0;
    mad_box_received(&to->box, &d);
}

static void invented(struct cm_node *to, struct input *in)
{
    struct cm_datagram d = {.hop_limit = 64};

    for (uint32_t i = 0; i < MAD_LEN && in->len; i++)
        d.mad[i] = (uint8_t)take(in, 1);
    memcpy(d.local_gid, to->box.device.gids[0], sizeof(d.local_gid));
    d.remote_gid[15] = (uint8_t)take(in, 1);
    mad_box_received(&to->box, &d);
}

static void step(struct input *in)
{
    uint32_t what = take(in, 1);
    struct cm_node *n = &cm_node[what >> 7], *other = &cm_node[!(what >> 7)];
    struct rdma_ucm_event_resp ev;

    switch (what % 8) {
    case 0:
    case 1:
    case 2:
        likely_command(n, in);
        break;
    case 3:
        any_command(n, in);
        break;
    case 4:
        damaged(n, other, in);
        break;
    case 5:
        invented(n, in);
        break;
    case 6:
        cm_event_of(n, n->channel, n->pipe, &ev);
        break;
    default:
        cm_settle();
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input in = {data, len};

    log_set_level(LOG_LEVEL_ERROR);
    if (!cm_start())
        abort();
    for (unsigned i = 0; in.len && i < STEPS_MAX; i++)
        step(&in);
    for (unsigned i = 0; i < CM_NODES; i++) {
        close(cm_node[i].sock);
        close(cm_node[i].pipe);
        cm_node[i].sock = cm_node[i].pipe = -1;
    }
    cm_settle();
    for (unsigned i = 0; i < CM_NODES; i++) {
        struct cm_host *h = &cm_node[i].t.host;

        if (h->ids.count || h->joins.count || !TAILQ_EMPTY(&h->channels) || !TAILQ_EMPTY(&h->ending) ||
            !TAILQ_EMPTY(&cm_node[i].t.clients.list))
            abort();
    }
    cm_end();
    return 0;
}
