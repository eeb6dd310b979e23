// SPDX-License-Identifier: BSD-2-Clause
/* Counters under the names of other systems. Each sysfs file exists once, and has the value that status reports. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/monitor/counter_names.h"

/* Every counter gets a different value: its number from 1, times 8. */
static void fill(uint64_t *v, size_t size)
{
    for (size_t i = 0; i < size / sizeof(*v); i++)
        v[i] = 8 * (i + 1);
}

struct names {
    char text[128][96];
    unsigned n;
};

static void collect(void *ctx, const char *dir, const char *name)
{
    struct names *l = ctx;

    cr_assert_lt(l->n, 128);
    snprintf(l->text[l->n++], sizeof(l->text[0]), "%s/%s", dir, name);
}

static json_t *in_status(json_t *o, const char *file)
{
    static const char *const hw[] = {"hw_counters", "mlx5_counters", "usnic_counters"};
    const char *name = strchr(file, '/') + 1;
    json_t *v = NULL;

    if (strncmp(file, "counters/", 9) == 0)
        return json_object_get(json_object_get(o, "port_counters"), name);
    for (unsigned i = 0; i < 3 && !v; i++)
        v = json_object_get(json_object_get(o, hw[i]), name);
    return v;
}

Test(counter_name, each_file_has_a_counter_of_the_status)
{
    struct engine_counters e;
    struct io_counters io;
    struct names l = {.n = 0};
    json_t *o = json_object();
    uint64_t v;

    fill((uint64_t *)&e, sizeof(e));
    fill((uint64_t *)&io, sizeof(io));
    counter_name_add(o, &e, &io, true);
    counter_name_files(collect, &l);
    cr_assert_gt(l.n, 50);
    for (unsigned i = 0; i < l.n; i++) {
        json_t *told = in_status(o, l.text[i]);

        cr_assert_not_null(told, "%s", l.text[i]);
        cr_assert(counter_name_value(l.text[i], &e, &io, &v), "%s", l.text[i]);
        cr_expect_eq((json_int_t)v, json_integer_value(told), "%s", l.text[i]);
        for (unsigned k = 0; k < i; k++)
            cr_expect_str_neq(l.text[i], l.text[k]);
    }
    cr_expect_eq(json_object_size(json_object_get(o, "port_counters")) +
                     json_object_size(json_object_get(o, "hw_counters")) +
                     json_object_size(json_object_get(o, "mlx5_counters")) +
                     json_object_size(json_object_get(o, "usnic_counters")),
                 l.n, "and status has no more than there are files");
    json_decref(o);
}

Test(counter_name, values_are_sums_of_the_right_counters)
{
    struct engine_counters e = {.send_rnr_err = 3, .rx_no_recv = 4, .sends = 5};
    struct io_counters io = {.tx_bytes = 4000, .tx_packets = 10, .tx_multicast = 4, .rx_bytes = 803};
    uint64_t v;

    cr_assert(counter_name_value("counters/port_xmit_data", &e, &io, &v));
    cr_expect_eq(v, 1000, "words of 4 bytes");
    cr_assert(counter_name_value("counters/port_rcv_data", &e, &io, &v));
    cr_expect_eq(v, 200);
    cr_assert(counter_name_value("counters/unicast_xmit_packets", &e, &io, &v));
    cr_expect_eq(v, 6);
    cr_assert(counter_name_value("counters/multicast_xmit_packets", &e, &io, &v));
    cr_expect_eq(v, 4);
    cr_assert(counter_name_value("hw_counters/out_of_buffer", &e, &io, &v));
    cr_expect_eq(v, 7);
    cr_assert(counter_name_value("hw_counters/rdma_sends", &e, &io, &v));
    cr_expect_eq(v, 5);
}

Test(counter_name, other_names_have_no_counter)
{
    static const char *const no[] = {"",
                                     "counters",
                                     "counters/",
                                     "port_xmit_data",
                                     "counters/rdma_sends",
                                     "hw_counters/port_xmit_data",
                                     "counters/port_xmit_data ",
                                     "/counters/port_xmit_data"};
    struct engine_counters e = {0};
    struct io_counters io = {0};
    uint64_t v;

    for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        cr_expect_not(counter_name_value(no[i], &e, &io, &v), "'%s'", no[i]);
}

/* Each packet that a device has sent belongs to one class; probes and management datagrams are counted apart. */
Test(counter_name, each_packet_has_one_class)
{
    const struct engine_counters e = {.sent_pkts = 1000,
                                      .acks_sent = 100,
                                      .sent_naks = 20,
                                      .np_cnp_sent = 3,
                                      .sent_responses = 200,
                                      .fast_retrans = 10,
                                      .probe_retrans = 5,
                                      .timeout_retrans = 4,
                                      .rnr_retrans = 1};
    const struct io_counters io = {0};
    json_t *o = json_object(), *classes;

    counter_name_add(o, &e, &io, true);
    classes = json_object_get(o, "tx_classes");
    cr_expect_eq(json_integer_value(json_object_get(classes, "ack")), 100);
    cr_expect_eq(json_integer_value(json_object_get(classes, "nak")), 20);
    cr_expect_eq(json_integer_value(json_object_get(classes, "cnp")), 3);
    cr_expect_eq(json_integer_value(json_object_get(classes, "response")), 200);
    cr_expect_eq(json_integer_value(json_object_get(classes, "retransmission")), 20);
    cr_expect_eq(json_integer_value(json_object_get(classes, "request")), 1000 - 100 - 20 - 3 - 200 - 20);
    json_decref(o);
}
