// SPDX-License-Identifier: BSD-2-Clause
/* Names and rates: every enumerator has a name of its own, other values have none, and rates convert as in the
 * system's library. */
#include <dlfcn.h>

#include "tests/verbs/vt.h"

static bool distinct(const char *(*name)(int), int first, int last, const char *none)
{
    for (int i = first; i <= last; i++) {
        const char *n = name(i);
        if (!n || !*n || !strcmp(n, none))
            return false;
        for (int j = first; j < i; j++)
            if (!strcmp(n, name(j)))
                return false;
    }
    return !strcmp(name(last + 1), none) && !strcmp(name(-5), none);
}
static const char *status(int i)
{
    return ibv_wc_status_str((enum ibv_wc_status)i);
}
static const char *event(int i)
{
    return ibv_event_type_str((enum ibv_event_type)i);
}
static const char *port(int i)
{
    return ibv_port_state_str((enum ibv_port_state)i);
}
static const char *node(int i)
{
    return ibv_node_type_str((enum ibv_node_type)i);
}

/* The same function in the system's library, loaded beside ours. */
static int (*theirs(void *lib, const char *name))(int)
{
    return (int (*)(int))dlsym(lib, name);
}

int main(void)
{
    VT_OWN("names and rates of the client library");
    ok(distinct(status, 0, IBV_WC_TM_RNDV_INCOMPLETE, "unknown"), "completion statuses");
    ok(distinct(event, 0, IBV_EVENT_WQ_FATAL, "unknown"), "events");
    ok(distinct(port, 0, IBV_PORT_ACTIVE_DEFER, "unknown"), "port states");
    ok(distinct(node, 1, IBV_NODE_UNSPECIFIED, "unknown"), "node types");
    ok(mbps_to_ibv_rate(103125) == IBV_RATE_100_GBPS && ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4, "rates");

    void *lib = dlmopen(LM_ID_NEWLM, "/usr/lib/x86_64-linux-gnu/libibverbs.so.1", RTLD_NOW);
    if (!lib) {
        printf("# no system library to compare with: %s\n", dlerror());
        return vt_failed;
    }
    int (*to_mult)(int) = theirs(lib, "ibv_rate_to_mult"), (*to_mbps)(int) = theirs(lib, "ibv_rate_to_mbps");
    int (*from_mult)(int) = theirs(lib, "mult_to_ibv_rate"), (*from_mbps)(int) = theirs(lib, "mbps_to_ibv_rate");
    need(to_mult && to_mbps && from_mult && from_mbps);
    bool same = true;
    for (int i = -2; i < 64; i++) {
        enum ibv_rate r = (enum ibv_rate)i;
        if (ibv_rate_to_mult(r) != to_mult(i) || ibv_rate_to_mbps(r) != to_mbps(i)) {
            printf("# rate %d: mult %d, theirs %d; mbps %d, theirs %d\n", i, ibv_rate_to_mult(r), to_mult(i),
                   ibv_rate_to_mbps(r), to_mbps(i));
            same = false;
        }
        if (to_mbps(i) > 0 && (int)mbps_to_ibv_rate(to_mbps(i)) != from_mbps(to_mbps(i)))
            same = false;
    }
    for (int i = -2; i < 1000; i++)
        if ((int)mult_to_ibv_rate(i) != from_mult(i)) {
            printf("# mult %d: %d, theirs %d\n", i, (int)mult_to_ibv_rate(i), from_mult(i));
            same = false;
        }
    ok(same, "rates convert as the system's library does it");
    return vt_failed;
}
