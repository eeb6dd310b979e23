// SPDX-License-Identifier: BSD-2-Clause
/* Describes the device under test: its port, the GID that the tests choose, and the features that it reports. The exit
 * code is 0 if the tests can run on it. conformance.py prints this before its table. */
#include "tests/verbs/device.h"

#include <arpa/inet.h>

static void describe_gid(struct ibv_context *ctx)
{
    char text[INET6_ADDRSTRLEN];
    struct ibv_gid_entry e;
    uint8_t index = vt_gid_index(ctx);
    need(ibv_query_gid_ex(ctx, vt_port(), index, &e, 0) == 0);
    inet_ntop(AF_INET6, e.gid.raw, text, sizeof(text));
    printf("GID: index %u, %s, %s\n", index, text,
           e.gid_type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
           : e.gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                : "InfiniBand");
}

static void describe_features(struct ibv_context *ctx)
{
    static const struct {
        enum vt_feature feature;
        const char *name;
    } all[] = {
        {VT_CONNECT, "connections"},
        {VT_UNRELIABLE, "UC and UD"},
        {VT_ATOMICS, "atomics"},
        {VT_ATOMIC_WRITE, "ATOMIC WRITE"},
        {VT_FLUSH, "FLUSH"},
        {VT_SRQ, "SRQ"},
        {VT_SRQ_RESIZE, "SRQ resize"},
        {VT_XRC, "XRC"},
        {VT_MW, "windows of type 1"},
        {VT_MW_TYPE_2, "windows of type 2"},
        {VT_TAG_MATCHING, "tag matching"},
        {VT_MULTICAST, "multicast"},
        {VT_ON_DEMAND, "on-demand paging"},
        {VT_DEVICE_MEMORY, "device memory"},
        {VT_MODERATION, "moderation of events"},
        {VT_TIMESTAMPS, "timestamps"},
    };
    const char *between = "features: ";
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!vt_lacks(ctx, all[i].feature)) {
            printf("%s%s", between, all[i].name);
            between = ", ";
        }
    printf("\n");
}

int main(void)
{
    struct ibv_context *ctx = vt_open();
    const struct ibv_device_attr a = vt_attr(ctx).orig_attr;
    struct ibv_port_attr port;
    if (ibv_query_port(ctx, vt_port(), &port)) {
        printf("%s has no port %u: it has ports 1 to %u\n", ibv_get_device_name(ctx->device), vt_port(),
               a.phys_port_cnt);
        return 1;
    }
    printf("device: %s, vendor 0x%06x, part %u, firmware %s\n", ibv_get_device_name(ctx->device), a.vendor_id,
           a.vendor_part_id, *a.fw_ver ? a.fw_ver : "-");
    printf("port: %u, %s, active MTU %u, longest message %u\n", vt_port(), ibv_port_state_str(port.state),
           128u << port.active_mtu, port.max_msg_sz);
    if (port.state != IBV_PORT_ACTIVE) {
        printf("the tests need an active port: bring the network interface of the device up\n");
        return 1;
    }
    describe_gid(ctx);
    describe_features(ctx);
    return ibv_close_device(ctx) != 0;
}
