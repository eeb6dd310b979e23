// SPDX-License-Identifier: BSD-2-Clause
/* The JSON of connection management for the status, from a copy that this test makes up. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/cm/cm_status.h"
#include "wire/gid.h"

static struct cm_snapshot snapshot;
static struct cm_snapshot_id ids[3];
static json_t *cm;

static struct cm_addr v4(unsigned last, uint16_t port)
{
    struct cm_addr a = {.port = port};

    gid_from_v4(a.gid, (uint8_t[4]){127, 0, 0, (uint8_t)last});
    return a;
}

static void make(void)
{
    static const char *const names[] = {"pumice0", "pumice1"};
    struct cm_addr any = {.v6 = true, .port = 7471};

    ids[0] = (struct cm_snapshot_id){.number = 1, .uid = 5, .pid = 100, .requests = 2};
    ids[0].info = (struct cm_id_info){.state = CM_ID_LISTEN, .port_space = 0x106, .src = any, .backlog = 8};
    ids[0].info.route.device = CM_NO_DEVICE;
    ids[1] = (struct cm_snapshot_id){.number = 2, .uid = 5, .pid = 100};
    ids[1].info = (struct cm_id_info){.state = CM_ID_ESTABLISHED,
                                      .port_space = 0x106,
                                      .qp_type = QPT_RC,
                                      .src = v4(1, 7471),
                                      .dst = v4(2, 40000),
                                      .local_qpn = 17,
                                      .remote_qpn = 18,
                                      .local_comm_id = 0xfeedbeef};
    ids[1].info.route.device = 1;
    ids[2] = (struct cm_snapshot_id){.number = 3, .uid = 5, .pid = 101};
    ids[2].info.route.device = CM_NO_DEVICE;
    ids[2].info.port_space = 0x111;
    snapshot =
        (struct cm_snapshot){.taken = 10 * NS_PER_S, .id = ids, .num_ids = 3, .num_channels = 2, .num_failures = 1};
    snapshot.counters.req_sent = 4;
    snapshot.failure[0] = (struct cm_failure){
        .at = 8 * NS_PER_S, .id = ids[1].info, .event = CM_EVENT_REJECTED, .status = 8, .uid = 5, .pid = 102};
    snapshot.failure[0].id.last_reject = CM_REJ_INVALID_SERVICE_ID;
    cm = cm_status_json(&snapshot, names, 2);
}
static void end(void)
{
    json_decref(cm);
}
TestSuite(cm_status, .init = make, .fini = end);

static json_t *at(const json_t *o, const char *list, size_t i, const char *member)
{
    return json_object_get(json_array_get(json_object_get(o, list), i), member);
}

static bool says(const char *list, size_t i, const char *member, const char *text)
{
    const char *s = json_string_value(at(cm, list, i, member));

    return s && strcmp(s, text) == 0;
}

static long long number(const char *list, size_t i, const char *member)
{
    return json_integer_value(at(cm, list, i, member));
}

Test(cm_status, a_listener)
{
    cr_assert_eq(json_array_size(json_object_get(cm, "listeners")), 1);
    cr_expect(says("listeners", 0, "address", "::"));
    cr_expect(says("listeners", 0, "space", "TCP"));
    cr_expect(number("listeners", 0, "port") == 7471 && number("listeners", 0, "backlog") == 8);
    cr_expect_eq(number("listeners", 0, "waiting"), 2);
    cr_expect(json_is_null(at(cm, "listeners", 0, "device")), "of all devices");
}

Test(cm_status, connections)
{
    cr_assert_eq(json_array_size(json_object_get(cm, "connections")), 2);
    cr_expect(says("connections", 0, "local", "127.0.0.1:7471"));
    cr_expect(says("connections", 0, "remote", "127.0.0.2:40000"));
    cr_expect(says("connections", 0, "device", "pumice1"));
    cr_expect(says("connections", 0, "state", "ESTABLISHED"));
    cr_expect(says("connections", 0, "type", "RC"));
    cr_expect(says("connections", 0, "comm_id", "0xfeedbeef"));
    cr_expect(number("connections", 0, "qpn") == 17 && number("connections", 0, "dest_qpn") == 18);
    cr_expect(json_is_null(at(cm, "connections", 1, "local")), "not bound");
    cr_expect(json_is_null(at(cm, "connections", 1, "qpn")));
    cr_expect(says("connections", 1, "space", "UDP"));
}

Test(cm_status, a_failure)
{
    cr_expect(says("failures", 0, "event", "REJECTED"));
    cr_expect(says("failures", 0, "reject_text", cm_reject_reason_text(8)));
    cr_expect_eq(number("failures", 0, "reject"), 8);
    cr_expect_eq(json_real_value(at(cm, "failures", 0, "ago_s")), 2.0);
    cr_expect(json_is_false(at(cm, "failures", 0, "answered")));
}

Test(cm_status, sums)
{
    json_t *states = json_object_get(cm, "states"), *counters = json_object_get(cm, "counters");

    cr_expect(json_is_true(json_object_get(cm, "answers")));
    cr_expect_eq(json_integer_value(json_object_get(cm, "ids")), 3);
    cr_expect_eq(json_integer_value(json_object_get(cm, "channels")), 2);
    cr_expect_eq(json_integer_value(json_object_get(states, "LISTEN")), 1);
    cr_expect_eq(json_integer_value(json_object_get(states, "IDLE")), 1);
    cr_expect_eq(json_integer_value(json_object_get(counters, "req_sent")), 4);
}

Test(cm_status, programs_have_names)
{
    json_t *devices = json_pack("[{s:[{s:i, s:s}]}]", "sessions", "pid", 100, "comm", "rping");

    cm_status_add_programs(cm, devices);
    cr_expect(says("connections", 0, "comm", "rping"));
    cr_expect(says("listeners", 0, "comm", "rping"));
    cr_expect(json_is_null(at(cm, "connections", 1, "comm")));
    json_decref(devices);
}

Test(cm_status, a_thread_that_does_not_answer)
{
    json_t *silent = cm_status_json(NULL, NULL, 0);

    cr_expect(json_is_false(json_object_get(silent, "answers")));
    cr_expect(json_is_array(json_object_get(silent, "listeners")));
    json_decref(silent);
}
