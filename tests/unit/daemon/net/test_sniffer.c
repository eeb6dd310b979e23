// SPDX-License-Identifier: BSD-2-Clause
/* The packet sockets that count as sniffers. */
#include <criterion/criterion.h>

#include "daemon/net/sniffer.h"

Test(sniffer, sockets_that_count_as_sniffers)
{
#define HEAD "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n"
#define ROW(proto, iface) "0000000000000000 3      3    " proto "   " iface "     1 0      0      4711\n"
    cr_assert_not(sniffer_in_text("", 2, 1));
    cr_assert_not(sniffer_in_text(HEAD, 2, 1));
    cr_assert(sniffer_in_text(HEAD ROW("0003", "2"), 2, 1), "on our interface");
    cr_assert(sniffer_in_text(HEAD ROW("0003", "0"), 2, 1), "on all");
    cr_assert(sniffer_in_text(HEAD ROW("0003", "1"), 2, 1), "on the loopback, where packets to our own addresses pass");
    cr_assert_not(sniffer_in_text(HEAD ROW("0003", "3"), 2, 1), "on another");
    cr_assert_not(sniffer_in_text(HEAD ROW("88cc", "2"), 2, 1), "LLDP only");
    cr_assert(sniffer_in_text(HEAD ROW("88cc", "2") ROW("0003", "2"), 2, 1));
}
