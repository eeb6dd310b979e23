// SPDX-License-Identifier: BSD-2-Clause
/* The box between a device's thread and connection management. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "daemon/device/mad_box.h"

#define MADS 20000u

static struct mad_box box;
static struct ev_loop *device_loop, *cm_loop;
static struct loop_wake to_cm;
static unsigned woken;

static void on_cm(void *arg)
{
    (void)arg;
    woken++;
}

static void setup(void)
{
    device_loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cm_loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    mad_box_init(&box);
    cr_assert_eq(mad_box_start(&box, device_loop), 0);
    cr_assert_eq(loop_wake_start(&to_cm, cm_loop, on_cm, NULL), 0);
    mad_box_attach(&box, &to_cm);
    woken = 0;
}

static void teardown(void)
{
    mad_box_attach(&box, NULL);
    mad_box_stop(&box);
    mad_box_fini(&box);
    loop_wake_stop(&to_cm);
    ev_loop_destroy(cm_loop);
    ev_loop_destroy(device_loop);
}
TestSuite(mad_box, .init = setup, .fini = teardown, .timeout = 60);

static struct cm_datagram datagram(unsigned number)
{
    struct cm_datagram d = {.device = 3, .sgid_index = 2};

    memcpy(d.mad, &number, sizeof(number));
    return d;
}

static unsigned number_of(const struct cm_datagram *d)
{
    unsigned n;

    memcpy(&n, d->mad, sizeof(n));
    return n;
}

Test(mad_box, a_mad_in_each_direction)
{
    struct cm_datagram d = datagram(1), out;

    cr_expect_not(mad_box_pending(&box));
    cr_expect_not(mad_box_next_to_send(&box, &out));
    cr_expect_not(mad_box_next_received(&box, &out));
    mad_box_send(&box, &d);
    cr_expect(mad_box_pending(&box));
    d = datagram(2);
    mad_box_received(&box, &d);
    cr_assert(mad_box_next_to_send(&box, &out));
    cr_expect_eq(number_of(&out), 1);
    cr_expect_not(mad_box_pending(&box));
    cr_assert(mad_box_next_received(&box, &out));
    cr_expect(number_of(&out) == 2 && out.device == 3 && out.sgid_index == 2);
}

Test(mad_box, each_side_wakes_the_other)
{
    struct cm_datagram d = datagram(1);

    mad_box_received(&box, &d);
    ev_run(cm_loop, EVRUN_ONCE); /* would sleep */
    cr_expect_eq(woken, 1);
    mad_box_send(&box, &d);
    ev_run(device_loop, EVRUN_ONCE);
}

Test(mad_box, a_full_box_drops_the_new_mads)
{
    struct cm_datagram out;

    for (unsigned i = 0; i < MAD_BOX_SLOTS + 5; i++) {
        struct cm_datagram d = datagram(i);
        mad_box_send(&box, &d);
        mad_box_received(&box, &d);
    }
    cr_expect(box.to_send.dropped == 5 && box.received.dropped == 5);
    for (unsigned i = 0; i < MAD_BOX_SLOTS; i++) {
        cr_assert(mad_box_next_to_send(&box, &out) && number_of(&out) == i);
        cr_assert(mad_box_next_received(&box, &out) && number_of(&out) == i);
    }
    cr_expect_not(mad_box_next_to_send(&box, &out));
}

Test(mad_box, without_a_reader_nothing_is_kept)
{
    struct cm_datagram d = datagram(1), out;

    mad_box_attach(&box, NULL);
    mad_box_received(&box, &d);
    mad_box_attach(&box, &to_cm);
    cr_expect_not(mad_box_next_received(&box, &out));
    cr_expect_eq(box.received.dropped, 1);
}

Test(mad_box, a_change_of_the_addresses_wakes_the_reader_once)
{
    struct mad_device d, out;

    memset(&d, 0, sizeof(d));
    d.guid = 7;
    d.num_gids = 1;
    mad_box_describe(&box, &d);
    mad_box_describe(&box, &d);
    ev_run(cm_loop, EVRUN_NOWAIT);
    cr_expect_eq(woken, 1);
    mad_box_describe(&box, &d);
    ev_run(cm_loop, EVRUN_NOWAIT);
    cr_expect_eq(woken, 1, "nothing has changed");
    mad_box_device(&box, &out);
    cr_expect(out.guid == 7 && out.num_gids == 1);
}

/* --- two threads ------------------------------------------------------------------------------- */

/* The device's thread: it sends every MAD back, and sleeps when there is none. */
static void *run_device(void *arg)
{
    unsigned seen = 0;
    struct cm_datagram d;

    while (seen < MADS) {
        while (mad_box_pending(&box) && mad_box_next_to_send(&box, &d)) {
            cr_assert_eq(number_of(&d), seen++);
            mad_box_received(&box, &d);
        }
        if (seen < MADS)
            ev_run(device_loop, EVRUN_ONCE);
    }
    return arg;
}

Test(mad_box, two_threads)
{
    pthread_t device;
    unsigned sent = 0, back = 0;
    struct cm_datagram d;

    pthread_create(&device, NULL, run_device, NULL);
    while (back < MADS) {
        while (sent < MADS && sent - back < MAD_BOX_SLOTS) {
            d = datagram(sent++);
            mad_box_send(&box, &d);
        }
        while (mad_box_next_received(&box, &d))
            cr_assert_eq(number_of(&d), back++);
        if (sent != back)
            ev_run(cm_loop, EVRUN_ONCE);
    }
    pthread_join(device, NULL);
    cr_expect(box.to_send.dropped == 0 && box.received.dropped == 0);
}
