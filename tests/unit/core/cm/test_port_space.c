// SPDX-License-Identifier: BSD-2-Clause
/* The rules of ports: which ID may bind one, and which listener gets a request. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/cm/port_space.h"
#include "wire/gid.h"

static struct port_table table;
static void *mem;

static void setup(void)
{
    struct permute_secret secret = {{1, 2}};
    mem = calloc(1, port_table_size());
    port_table_init(&table, mem, 1000, 1009, &secret);
}
static void teardown(void)
{
    free(mem);
}
TestSuite(port_space, .init = setup, .fini = teardown);

/* "4": 0.0.0.0, "6": ::, "4n": 10.0.0.n, "6n": 2001::n. A capital R: REUSEADDR; A: AFONLY; L: listens. */
static struct binding make(const char *text, uint16_t port)
{
    struct binding b = {.port_space = CM_PS_TCP, .addr = {.v6 = text[0] == '6', .port = port}};
    b.afonly = text[0] == '4';
    if (!b.addr.v6)
        gid_from_v4(b.addr.gid, (const uint8_t[4]){0});
    for (const char *p = text + 1; *p; p++) {
        if (*p == 'R')
            b.reuseaddr = true;
        else if (*p == 'A')
            b.afonly = true;
        else if (*p == 'L')
            b.listening = true;
        else
            b.addr.gid[15] = (uint8_t)*p, b.addr.gid[b.addr.v6 ? 0 : 12] = b.addr.v6 ? 0x20 : 10;
    }
    return b;
}

Test(port_space, conflicts)
{
    static const struct {
        const char *first, *second;
        int rc;
    } cases[] = {
        {"41", "41", -EADDRINUSE},
        {"41", "42", 0},
        {"4", "41", -EADDRNOTAVAIL},
        {"41", "4", -EADDRNOTAVAIL},
        {"4", "4", -EADDRNOTAVAIL},
        {"6", "4", -EADDRNOTAVAIL},
        {"6A", "4", 0},
        {"4", "6A", 0},
        {"4", "6", -EADDRNOTAVAIL},
        {"61", "41", 0},
        {"6A", "61", -EADDRNOTAVAIL},
        {"6A", "41", 0},
        {"6", "41", -EADDRNOTAVAIL},
        {"41R", "41R", 0},
        {"41R", "41", -EADDRINUSE},
        {"41", "41R", -EADDRINUSE},
        {"41RL", "41R", -EADDRINUSE},
        {"4R", "41R", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct binding a = make(cases[i].first, 7), b = make(cases[i].second, 7);
        cr_assert_eq(port_space_bind(&table, &a), 0);
        cr_assert_eq(port_space_bind(&table, &b), cases[i].rc, "%s, then %s", cases[i].first, cases[i].second);
        port_space_release(&b);
        port_space_release(&a);
        port_space_release(&a); /* does nothing */
    }
}

Test(port_space, spaces_and_ports_are_independent)
{
    struct binding a = make("4", 7), b = make("4", 8), c = make("4", 7);
    c.port_space = CM_PS_UDP;
    cr_assert_eq(port_space_bind(&table, &a), 0);
    cr_assert_eq(port_space_bind(&table, &b), 0);
    cr_assert_eq(port_space_bind(&table, &c), 0);
    cr_assert_not(port_space_exists(0x100));
}

Test(port_space, listening_is_exclusive)
{
    struct binding a = make("41R", 7), b = make("41R", 7);
    port_space_bind(&table, &a);
    cr_assert_eq(port_space_may_listen(&table, &a), 0);
    port_space_bind(&table, &b);
    cr_assert_eq(port_space_may_listen(&table, &a), -EADDRINUSE);
    port_space_release(&b);
    cr_assert_eq(port_space_may_listen(&table, &a), 0);
}

Test(port_space, ephemeral_ports_are_all_used_in_no_order)
{
    struct binding b[11];
    unsigned seen = 0, in_order = 0;
    for (unsigned i = 0; i < 11; i++) {
        b[i] = make("41", 0);
        int rc = port_space_bind(&table, &b[i]);
        if (i == 10) {
            cr_assert_eq(rc, -EADDRNOTAVAIL);
            continue;
        }
        cr_assert_eq(rc, 0);
        cr_assert(b[i].addr.port >= 1000 && b[i].addr.port <= 1009);
        seen |= 1u << (b[i].addr.port - 1000);
        in_order += i && b[i].addr.port == b[i - 1].addr.port + 1;
    }
    cr_assert_eq(seen, 0x3ff);
    cr_assert_lt(in_order, 5);
    uint16_t freed = b[3].addr.port;
    port_space_release(&b[3]);
    b[10] = make("41", 0);
    cr_assert_eq(port_space_bind(&table, &b[10]), 0);
    cr_assert_eq(b[10].addr.port, freed);
}

Test(port_space, listener_of_a_request)
{
    struct binding one = make("41L", 7), all = make("6L", 8), v6 = make("6AL", 9), idle = make("4", 10);
    uint8_t v4_1[16], v4_2[16], v6_1[16] = {0x20, [15] = '1'};
    gid_from_v4(v4_1, (const uint8_t[4]){10, 0, 0, '1'});
    gid_from_v4(v4_2, (const uint8_t[4]){10, 0, 0, '2'});
    port_space_bind(&table, &one);
    port_space_bind(&table, &all);
    port_space_bind(&table, &v6);
    port_space_bind(&table, &idle);
    cr_assert_eq(port_space_find(&table, CM_PS_TCP, 7, false, v4_1), &one);
    cr_assert_null(port_space_find(&table, CM_PS_TCP, 7, false, v4_2));
    cr_assert_null(port_space_find(&table, CM_PS_UDP, 7, false, v4_1));
    cr_assert_null(port_space_find(&table, 0x999, 7, false, v4_1));
    cr_assert_eq(port_space_find(&table, CM_PS_TCP, 8, false, v4_2), &all);
    cr_assert_eq(port_space_find(&table, CM_PS_TCP, 8, true, v6_1), &all);
    cr_assert_eq(port_space_find(&table, CM_PS_TCP, 9, true, v6_1), &v6);
    cr_assert_null(port_space_find(&table, CM_PS_TCP, 9, false, v4_1));
    cr_assert_null(port_space_find(&table, CM_PS_TCP, 10, false, v4_1));
}
