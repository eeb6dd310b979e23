// SPDX-License-Identifier: BSD-2-Clause
/* A device's thread ends when it is stopped, whatever it is doing then. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;

static void nothing(struct mailbox_call *call)
{
    (void)call;
}

/* The stop comes just after the thread woke up for another reason. It must not sleep again. */
Test(stop, just_woken, .timeout = 30)
{
    enum { ROUNDS = 300 };

    cr_assert(fixture_start(&f));
    for (unsigned i = 0; i < ROUNDS; i++) {
        f.device->stop = false;
        cr_assert_eq(device_start(f.device, -1), 0);
        usleep(3000); /* until it sleeps */
        struct mailbox_call call = {.run = nothing, .drop = nothing};
        cr_assert_eq(device_do(f.device, &call), MAILBOX_DONE);
        device_stop(f.device);
    }
    fixture_end(&f);
}
