// SPDX-License-Identifier: BSD-2-Clause
/* Where the device's buffers of packets begin in their pages. On some processors, the kernel copies slowly between a payload
 * and a program's buffer if one is a few bytes behind the other (PACKETS_SKEW in daemon/loop/device_setup.c). No packet of
 * a message of 64 KiB may be there. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/pkt.h"

enum { PAGE = 4096, SLOW_BELOW = 32, PACKETS = 16 };

static bool slow(uintptr_t to, uintptr_t from)
{
    uintptr_t behind = (to - from) % PAGE;

    return behind > 0 && behind < SLOW_BELOW;
}

/* A WRITE of 64 KiB whose packets begin at buf. user: offset of the program's buffer in its page. */
static void check_message(const uint8_t *buf, uintptr_t user, const char *what)
{
    uintptr_t at = (uintptr_t)buf;

    for (int i = 0; i < PACKETS; i++) {
        at += BTH_LEN + (i == 0 ? RETH_LEN : 0);
        cr_expect(!slow(at, user) && !slow(user, at), "%s: packet %d of a buffer at %u", what, i, (unsigned)user);
        at += PAGE + ICRC_LEN;
    }
}

Test(packet_buffers, no_copy_from_or_to_a_program_is_slow)
{
    static const uintptr_t users[] = {0, 16, 64, 128}; /* at a page, from malloc, behind a header */
    struct fixture f;

    cr_assert(fixture_start(&f));
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        check_message(f.device->tx.buf, users[i], "sent");
        for (unsigned m = 0; m < UDP_RX_MSGS; m++)
            check_message(f.device->udp.rx.buf + (size_t)m * UDP_RX_BYTES, users[i], "received");
    }
    fixture_end(&f);
}
