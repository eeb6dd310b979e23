// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/usage_status.h"

#include "daemon/base/json.h"

json_t *usage_json(const struct usage *u, uint64_t sent)
{
    json_t *o = json_object();

    json_object_set_new(o, "makers", json_number(u->makers));
    json_object_set_new(o, "connected", json_number(u->connected));
    json_object_set_new(o, "connected_pkts", json_number(u->sent_pkts + sent));
    return o;
}
