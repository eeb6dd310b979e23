// SPDX-License-Identifier: BSD-2-Clause
/* The events of a device whose interface goes down or loses its address. The test has its own network namespace. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/skip.h"

static struct fixture f;
static struct session *s;
static int events = -1;

static bool ip(const char *args)
{
    char cmd[128];

    snprintf(cmd, sizeof(cmd), "ip %s >/dev/null 2>&1", args);
    return system(cmd) == 0;
}

static bool start(void)
{
    char why[ERROR_TEXT_MAX];

    /* Root needs no user namespace, and often may not create one. */
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    if (!ip("link set lo up") || !ip("address add 10.9.8.7/24 dev lo"))
        return false;
    settings_init(&f.settings);
    cr_assert_eq(settings_add_device(&f.settings, "test0", "10.9.8.7", why), 0);
    f.device = aligned_alloc(64, (sizeof(*f.device) + 63) & ~(size_t)63);
    cr_assert_eq(device_init(f.device, &f.settings, 0, why), 0);
    cr_assert_eq(device_open(f.device, why), 0, "%s", why);
    s = fixture_session_events(&f, &events);
    cr_assert_not_null(s);
    return true;
}

/* Returns the next event, after the loop has read the kernel's messages. */
static uint32_t next_event(void)
{
    struct pm_async_event ev = {0};

    for (int i = 0; i < 100 && !fixture_event(events, &ev); i++) {
        ev_run(f.device->loop, EVRUN_NOWAIT);
        usleep(1000);
    }
    return ev.type;
}

static int gid_entry(void)
{
    struct pm_query_gid_req r = {0};

    return fixture_call(&f, s, PM_OP_QUERY_GID, &r, sizeof(r), NULL, 0);
}

Test(port, events_of_the_interface)
{
    struct pm_query_port_rep port;

    if (!start())
        SKIP_TEST("events of the interface", "no network namespace can be made here");
    cr_assert_eq(gid_entry(), 0);
    cr_assert(ip("address del 10.9.8.7/24 dev lo"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_eq(gid_entry(), -ENOENT);
    cr_assert(ip("address add 10.9.8.6/24 dev lo"));
    cr_assert_eq(next_event(), 0, "another's");
    cr_assert(ip("address add 10.9.8.7/24 dev lo"));
    cr_assert_eq(next_event(), IBV_EVENT_GID_CHANGE);
    cr_assert_eq(gid_entry(), 0);
    cr_assert(ip("link set lo down"));
    cr_assert_eq(next_event(), IBV_EVENT_PORT_ERR);
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_PORT, NULL, 0, &port, sizeof(port)), 0);
    cr_assert_eq(port.state, IBV_PORT_DOWN);
    cr_assert(ip("link set lo up"));
    cr_assert_eq(next_event(), IBV_EVENT_PORT_ACTIVE);
    close(events);
    fixture_end(&f);
}
