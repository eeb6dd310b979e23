// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/run/traffic.h"

#include <jansson.h>

#include "pumice/abi.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/targets.h"

/* Sums over all devices. */
struct sums {
    json_int_t makers; /* processes that made queue pairs; exact up to two */
    json_int_t connected; /* connected queue pairs */
    json_int_t connected_pkts; /* packets over connected queue pairs */
    json_int_t sent; /* packets */
};

static json_int_t value(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static void add(struct sums *s, const json_t *device)
{
    const json_t *use = json_object_get(device, "usage");

    s->makers += value(use, "makers");
    s->connected += value(use, "connected");
    s->connected_pkts += value(use, "connected_pkts");
    s->sent += value(json_object_get(device, "counters"), "sent_pkts");
}

enum traffic traffic_check(const struct lab *lab)
{
    struct sums s = {0};
    char path[SOCKET_PATH_MAX];

    for (unsigned i = 0; i < lab->hosts && !s.connected_pkts; i++) {
        json_t *status = NULL, *device;
        size_t k;

        if (lab->host[i].pid && targets_lab_socket(lab->dir, i, path) == 0)
            status = control_fetch_quietly(path, PM_OP_STATUS, NULL, 0);
        if (!status)
            return TRAFFIC_OK;
        json_array_foreach (json_object_get(status, "devices"), k, device)
            add(&s, device);
        json_decref(status);
    }
    if (!s.makers)
        return TRAFFIC_NO_QP;
    /* One process alone, such as a program that prints the device's attributes, has no peer. */
    if (s.makers < 2 || s.connected_pkts)
        return TRAFFIC_OK;
    return !s.sent ? TRAFFIC_NONE : s.connected ? TRAFFIC_SETUP : TRAFFIC_OK;
}
