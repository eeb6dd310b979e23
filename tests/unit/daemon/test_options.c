// SPDX-License-Identifier: BSD-2-Clause
/* Values of options (daemon/options.h), and the configuration file (daemon/config.h), whose errors name the line.
 * test_option_table.c walks the whole table. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/options.h"

static struct settings o;
static char why[ERROR_TEXT_MAX];

static void start(void)
{
    settings_init(&o);
    why[0] = 0;
}

TestSuite(options, .init = start);

Test(options, defaults_make_one_device)
{
    settings_finish(&o);
    cr_assert_eq(o.devices, 1);
    cr_assert_str_eq(o.device[0].name, "pumice0");
    cr_assert_eq(o.gso, GSO_AUTO);
    cr_assert_eq(o.memory, MEMORY_AUTO);
    cr_assert_eq(o.mtu, 0);
    cr_assert_eq(o.ack_delay_us, -1);
    cr_assert_eq(o.cnp_dscp, -1);
    cr_assert_eq(o.min_timeout_us, 0);
}

Test(options, a_whole_file)
{
    static const char text[] =
        "# comment\n"
        "socket = /run/x.sock\n"
        "group = rdma\n"
        "gso = off\necn = on\ncnp-dscp = 48\nloopback = wire\nmemory = proc_mem\nmtu = 2048\n"
        "fault = \"loss=1%,dup=2%\"\nseed = 0x10\nwindow = 128\nack-delay-us = 0\nidle-us = 20\ncpus = \"3,1\"\n"
        "min-timeout-us = 500000\nrcvbuf = 1048576\nlog-level = debug\n"
        "device eth { address = 192.0.2.1 }\n"
        "device six { address = \"fd00::1\" }\n";
    char buf[ADDR_TEXT_MAX];

    cr_assert_eq(config_load_text(&o, text, why), 0, "%s", why);
    cr_assert_str_eq(o.socket, "/run/x.sock");
    cr_assert_str_eq(o.group, "rdma");
    cr_assert_eq(o.gso, GSO_OFF);
    cr_assert(o.loopback_wire);
    cr_assert(o.ecn);
    cr_assert_eq(o.cnp_dscp, 48);
    cr_assert_eq(o.memory, MEMORY_PROC_MEM);
    cr_assert_eq(o.mtu, 4);
    cr_assert_str_eq(o.fault, "loss=1%,dup=2%");
    cr_assert_eq(o.seed, 16);
    cr_assert(o.has_seed);
    cr_assert_eq(o.window_pkts, 128);
    cr_assert_eq(o.ack_delay_us, 0);
    cr_assert_eq(o.min_timeout_us, 500000);
    cr_assert_eq(o.idle_us, 20);
    cr_assert_eq(o.cpus, 2);
    cr_assert_eq(o.cpu[0], 3);
    cr_assert_eq(o.cpu[1], 1);
    cr_assert_eq(o.rcvbuf, 1048576);
    for (unsigned i = 0; i < LOG_AREAS; i++)
        cr_assert_eq(o.log_levels.of[i], LOG_LEVEL_DEBUG);
    cr_assert_eq(o.devices, 2);
    cr_assert(o.devices_replaceable);
    cr_assert_str_eq(o.device[1].name, "six");
    cr_assert_str_eq(addr_text(&o.device[1].addr[0], buf), "fd00::1");
}

struct bad_text {
    char text[160];
    char says[80];
};
ParameterizedTestParameters(options, file_errors_name_the_line)
{
    static struct bad_text t[] = {
        {"gso = on\n\nidle-us = x\n", "config:3: idle-us: invalid value \"x\""},
        {"gso = maybe\n", "config:1: gso: invalid value \"maybe\": expected auto, on or off"},
        {"gso = on\nspeed = 9\n", "config:2: no such option 'speed'"},
        {"device a {\n}\n", "device a has no address"},
        {"\ndevice a { address = 127.1 }\n", "config:2: address: invalid value \"127.1\""},
        {"device a { address = 127.0.0.1 }\ndevice b { address = 127.0.0.1 }\n",
         "config:2: devices a and b have the same"},
        {"device a { address = 127.0.0.1 }\ndevice a { address = 127.0.0.2 }\n",
         "config:2: there are two devices with the name a"},
        {"fault = loss=5\n", "config:1: fault: "},
        {"window = 0\n", "config:1: window: "},
        {"min-timeout-us = 999\n", "config:1: min-timeout-us: "},
        {"window = 4194305\n", "config:1: window: "},
        {"gso on\n", "config:1: "},
    };
    return cr_make_param_array(struct bad_text, t, sizeof(t) / sizeof(t[0]));
}
ParameterizedTest(struct bad_text *p, options, file_errors_name_the_line)
{
    settings_init(&o);
    cr_assert_neq(config_load_text(&o, p->text, why), 0, "accepted: %s", p->text);
    cr_assert_not_null(strstr(why, p->says), "\"%s\" does not say \"%s\"", why, p->says);
}

Test(options, missing_file)
{
    cr_assert_neq(config_load(&o, "/nonexistent/pumiced.conf", why), 0);
    cr_assert_not_null(strstr(why, "/nonexistent/pumiced.conf"));
}

Test(options, numbers_are_whole)
{
    static const char *const bad[] = {"", " 1", "-1", "+1", "1x", "1.5", "0x", "99999999999999999999"};

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_neq(options_set(&o, "seed", bad[i], why), 0, "\"%s\" was taken for a number", bad[i]);
    cr_assert_eq(options_set(&o, "seed", "18446744073709551615", why), 0);
    cr_assert_eq(o.seed, UINT64_MAX);
}

/* An ACK is never delayed by more than a quarter of the shortest possible timeout. */
Test(options, values_have_bounds)
{
    static const struct {
        const char *name, *least, *most, *below, *above;
    } bounds[] = {
        {"ack-delay-us", "0", "250", "-1", "251"},
        {"min-timeout-us", "1000", "60000000", "999", "60000001"},
        {"window", "1", "4194304", "0", "4194305"},
        {"cnp-dscp", "0", "63", "-1", "64"},
    };

    for (unsigned i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        cr_expect_eq(options_set(&o, bounds[i].name, bounds[i].least, why), 0, "%s", bounds[i].name);
        cr_expect_eq(options_set(&o, bounds[i].name, bounds[i].most, why), 0, "%s", bounds[i].name);
        cr_expect_neq(options_set(&o, bounds[i].name, bounds[i].below, why), 0, "%s", bounds[i].name);
        cr_expect_neq(options_set(&o, bounds[i].name, bounds[i].above, why), 0, "%s", bounds[i].name);
        cr_expect_not_null(strstr(why, bounds[i].above), "%s", why);
    }
}

Test(options, device_names_and_count)
{
    char value[64];

    cr_assert_neq(options_set(&o, "device", "127.0.0.1", why), 0, "no name");
    cr_assert_neq(options_set(&o, "device", "=127.0.0.1", why), 0, "empty name");
    cr_assert_neq(options_set(&o, "device", "a/b=127.0.0.1", why), 0, "a name is a file name under /sys");
    cr_assert_neq(options_set(&o, "device", "abcdefghijabcdefghijabcdefghijab=127.0.0.1", why), 0, "32 letters");
    for (int i = 0; i < PM_DEVICES_MAX; i++) {
        snprintf(value, sizeof(value), "127.0.0.%d", i + 1);
        cr_assert_eq(options_set(&o, "address", value, why), 0, "%s", why);
    }
    cr_assert_str_eq(o.device[15].name, "pumice15");
    cr_assert_neq(options_set(&o, "address", "127.0.0.99", why), 0, "one too many");
}

Test(options, no_such_setting)
{
    cr_assert_neq(options_set(&o, "speed", "1", why), 0);
    cr_assert_neq(options_set(&o, "config", "x", why), 0, "files don't include files");
}
