// SPDX-License-Identifier: BSD-2-Clause
/* Management datagrams on their way between the box and the engine of a device. */
#include <criterion/criterion.h>

#include "daemon/loop/tx.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/cm_msg.h"

static struct fixture f;

static void setup(void)
{
    cr_assert(fixture_start(&f));
}
static void teardown(void)
{
    fixture_end(&f);
}
TestSuite(mads, .init = setup, .fini = teardown, .timeout = 60);

static void on_mad(void *arg)
{
    (void)arg;
}

/* The device has the address 127.0.0.1 and no network: the MAD stays inside. */
Test(mads, a_mad_to_the_device_itself_comes_back)
{
    struct loop_wake wake;
    struct mad_device m;
    struct cm_datagram d = {.device = 0, .traffic_class = 8, .hop_limit = 64}, in;

    cr_assert_eq(loop_wake_start(&wake, f.device->loop, on_mad, NULL), 0);
    mad_box_attach(&f.device->mads, &wake);
    mad_box_device(&f.device->mads, &m);
    cr_assert(m.num_gids == 1 && memcmp(m.gids[0], f.device->gid, 16) == 0);
    cr_expect_eq(m.active_mtu, f.device->active_mtu);
    memcpy(d.remote_gid, m.gids[0], 16);
    for (unsigned i = 0; i < MAD_LEN; i++)
        d.mad[i] = (uint8_t)i;
    mad_box_send(&f.device->mads, &d);
    device_pass(f.device, clock_ns());
    cr_assert(mad_box_next_received(&f.device->mads, &in));
    cr_expect_arr_eq(in.mad, d.mad, MAD_LEN);
    cr_expect_arr_eq(in.remote_gid, m.gids[0], 16);
    cr_expect_arr_eq(in.local_gid, m.gids[0], 16);
    cr_expect(in.device == 0 && in.sgid_index == 0 && in.traffic_class == 8 && in.hop_limit == 64);
    cr_expect_not(mad_box_pending(&f.device->mads));
    mad_box_attach(&f.device->mads, NULL);
    loop_wake_stop(&wake);
}

/* A pass carries a bounded number, and says that there may be more. */
Test(mads, a_flood_is_carried_by_several_passes)
{
    struct cm_datagram d = {.hop_limit = 64};
    unsigned passes = 0;

    memcpy(d.remote_gid, f.device->gid, 16);
    for (unsigned i = 0; i < MAD_BOX_SLOTS; i++)
        mad_box_send(&f.device->mads, &d);
    while (device_pass(f.device, clock_ns()))
        passes++;
    cr_expect_gt(passes, 1);
    cr_expect_not(mad_box_pending(&f.device->mads));
    cr_expect_eq(engine_counters(f.device->engine)->gsi_mads_rcvd, MAD_BOX_SLOTS);
}

/* A fault finds the message in the packet. */
Test(mads, a_message_is_dropped_by_its_name)
{
    static const uint16_t sent[] = {CM_REQ, CM_REP, CM_REP, CM_RTU};
    struct cm_datagram d = {.hop_limit = 64};
    struct fault_spec spec;
    struct gsi_mad got;

    cr_assert_eq(fault_parse("drop=REP#1", &spec, NULL, 0), 0);
    fault_init(&f.device->fault, &spec, 1, 0, 0);
    memcpy(d.remote_gid, f.device->gid, 16);
    for (unsigned i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        struct cm_msg m = {.attribute = sent[i], .transaction_id = i};
        struct av av = {.hop_limit = 64};

        cm_msg_encode(&m, d.mad);
        memcpy(av.dgid, d.remote_gid, sizeof(av.dgid));
        cr_assert_eq(engine_send_mad(f.device->engine, &av, d.mad), 0);
    }
    while (device_tx(f.device, clock_ns()) != 0) {
    }
    for (unsigned i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        struct cm_msg m;

        if (i == 1)
            continue;
        cr_assert(engine_pop_mad(f.device->engine, &got));
        cr_assert_eq(cm_msg_decode(got.data, &m), CM_DECODE_OK);
        cr_expect_eq(m.transaction_id, i);
        cr_expect_eq(m.attribute, sent[i]);
    }
    cr_expect_not(engine_pop_mad(f.device->engine, &got));
    cr_expect_eq(f.device->fault.counters.fault_dropped, 1);
}
