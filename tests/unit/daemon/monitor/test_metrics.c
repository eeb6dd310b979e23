// SPDX-License-Identifier: BSD-2-Clause
/* The addresses at which counters may be served, and their text. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/monitor/metrics.h"
#include "daemon/options.h"

Test(metrics, only_on_the_loopback)
{
    static const char *const good[] = {"9400", "127.0.0.1:9400", "127.1.2.3:9400", "[::1]:9400"};
    static const char *const bad[] = {
        "",          "0",          "65536",     "x",     "0.0.0.0:9400",   "10.0.0.1:9400",
        "[::]:9400", "127.0.0.1:", "127.0.0.1", ":9400", "localhost:9400", "127.0.0.1:94x"};
    struct settings o;
    char why[ERROR_TEXT_MAX];

    settings_init(&o);
    cr_expect_eq(addr_port(&o.metrics), 0, "off by default");
    for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cr_expect_eq(options_set(&o, "metrics", good[i], why), 0, "%s: %s", good[i], why);
        cr_expect_eq(addr_port(&o.metrics), 9400);
    }
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_neq(options_set(&o, "metrics", bad[i], why), 0, "'%s' was taken", bad[i]);
        cr_expect_eq(addr_port(&o.metrics), 0);
    }
}

Test(metrics, labels_are_escaped)
{
    json_t *status = json_pack("{s:[{s:s, s:s, s:{s:i}, s:[{s:i, s:s, s:s, s:{s:i}}]}]}", "devices", "name", "a\"b",
                               "port", "active", "counters", "sent_pkts", 5, "qps", "qpn", 17, "type", "RC", "comm",
                               "x\\\n", "counters", "sent_pkts", 4);
    char *text;

    cr_assert_not_null(status);
    text = metrics_text(status);
    cr_expect_not_null(strstr(text, "pumice_sent_pkts_total{device=\"a\\\"b\"} 5\n"));
    cr_expect_not_null(strstr(
        text, "pumice_qp_sent_pkts_total{device=\"a\\\"b\",qpn=\"0x000011\",type=\"RC\",program=\"x\\\\\\n\"} 4\n"));
    free(text);
    json_decref(status);
}

Test(metrics, connection_management)
{
    json_t *status = json_pack("{s:[], s:{s:b, s:{s:i}, s:{s:i}}}", "devices", "cm", "answers", 1, "counters",
                               "req_sent", 7, "states", "LISTEN", 2);
    char *text = metrics_text(status);

    cr_expect_not_null(strstr(text, "pumice_cm_req_sent_total 7\n"));
    cr_expect_not_null(strstr(text, "pumice_cm_rtu_sent_total 0\n"));
    cr_expect_not_null(strstr(text, "pumice_cm_ids{state=\"LISTEN\"} 2\n"));
    free(text);
    json_object_set_new(json_object_get(status, "cm"), "answers", json_false());
    text = metrics_text(status);
    cr_expect_null(strstr(text, "pumice_cm"), "a silent thread has no values");
    free(text);
    json_decref(status);
}
