// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/device_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/control/session_end.h"
#include "daemon/loop/device_setup.h"

_Static_assert(CONNECTION_SLOTS == 2 * DEVICE_MAX_QP, "as many slots as the engine's table of QPs has");

int device_set_open(struct device_set *s, const struct settings *settings, char why[ERROR_TEXT_MAX])
{
    /* Packets between QPs of this daemon pass through a socket. */
    bool hairpin = settings->devices > 1 || settings->loopback_wire;

    if (hairpin && connections_init(&s->connections, settings->devices) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return -ENOMEM;
    }
    for (unsigned i = 0; i < settings->devices; i++) {
        struct device *d = aligned_alloc(64, (sizeof(*d) + 63) & ~(size_t)63);
        char text[ERROR_TEXT_MAX - 64] = "";
        int rc;

        if (!d) {
            snprintf(why, ERROR_TEXT_MAX, "out of memory");
            return -ENOMEM;
        }
        rc = device_init(d, settings, i, why);
        d->connections = hairpin ? &s->connections : NULL;
        s->device[s->n++] = d;
        if (rc == 0)
            rc = device_open(d, why);
        if (rc) {
            snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, why);
            snprintf(why, ERROR_TEXT_MAX, "device %s: %s", d->name, text);
            return rc;
        }
    }
    return 0;
}

void device_set_stop(struct device_set *s)
{
    for (unsigned i = 0; i < s->n; i++)
        device_stop(s->device[i]);
}

void device_set_close(struct device_set *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        session_close_all(s->device[i]);
        device_fini(s->device[i]);
        free(s->device[i]);
    }
    connections_fini(&s->connections);
    s->n = 0;
}

struct fault_call {
    struct device *device;
    struct fault_spec spec;
    uint64_t seed;
};

static void run_fault(void *arg)
{
    struct fault_call *call = arg;

    device_set_fault(call->device, &call->spec, call->seed);
}

int device_set_inject(struct device_set *s, const char *spec, uint64_t seed, char why[FAULT_WHY_MAX])
{
    struct fault_call call = {.seed = seed};

    if (fault_parse(spec, &call.spec, why, FAULT_WHY_MAX) != 0)
        return -EINVAL;
    for (unsigned i = 0; i < s->n; i++) {
        call.device = s->device[i];
        device_do(call.device, run_fault, &call);
    }
    snprintf(s->fault, sizeof(s->fault), "%s", spec);
    s->seed = seed;
    log_info("faults: %s, seed %llu", s->fault[0] ? s->fault : "none", (unsigned long long)s->seed);
    return 0;
}

struct peers_call {
    struct device *device;
    const struct peer_list *peers;
};

static void run_peers(void *arg)
{
    struct peers_call *call = arg;

    device_set_peers(call->device, call->peers);
}

void device_set_admit(struct device_set *s, const struct peer_list *peers)
{
    struct peers_call call = {.peers = peers};

    for (unsigned i = 0; i < s->n; i++) {
        call.device = s->device[i];
        device_do(call.device, run_peers, &call);
    }
    log_info("list of peers: %u prefixes%s", peers->n, peers->n ? "" : " (any address)");
}
