// SPDX-License-Identifier: BSD-2-Clause
/* The log: its rate, its levels, and the form of its lines. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"

Test(log, rate)
{
    struct log_rate rate = {0};
    uint32_t left_out, said = 0;

    for (int i = 0; i < 1000; i++)
        said += log_rate_allows(&rate, &left_out);
    cr_assert(said >= LOG_RATE_BURST && said <= 2 * LOG_RATE_BURST + 1, "%u", said);
    usleep(1100000);
    cr_assert(log_rate_allows(&rate, &left_out));
    cr_assert_gt(left_out, 0, "it says how many were left out");
}

Test(log, levels_of_areas)
{
    struct log_levels l;

    cr_assert_eq(log_levels_parse("info", &l), 0);
    for (unsigned i = 0; i < LOG_AREAS; i++)
        cr_expect_eq(l.of[i], LOG_LEVEL_INFO);
    cr_assert_eq(log_levels_parse("qp=debug,error,packet=info", &l), 0);
    cr_expect_eq(l.of[LOG_QP], LOG_LEVEL_DEBUG);
    cr_expect_eq(l.of[LOG_PACKET], LOG_LEVEL_INFO);
    cr_expect_eq(l.of[LOG_NET], LOG_LEVEL_ERROR);
    cr_assert_eq(log_levels_parse("qp=debug", &l), 0);
    cr_expect_eq(l.of[LOG_NET], LOG_LEVEL_WARN, "what is not named");
    for (const char *const *bad = (const char *const[]){"", "loud", "qp=", "=info", "cpu=info", "info,", "qp", NULL};
         *bad; bad++)
        cr_expect_neq(log_levels_parse(*bad, &l), 0, "'%s' was taken", *bad);
}

/* The form of the lines. Standard error is a pipe for a while. */
static size_t logged(bool json, char *out, size_t size)
{
    int ends[2], saved = dup(STDERR_FILENO);
    json_t *fields = json_pack("{s:i}", "qpn", 17);
    ssize_t n;

    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_set_level(LOG_LEVEL_INFO);
    log_set_json(json);
    log_write_fields(LOG_QP, LOG_LEVEL_INFO, fields, "a \"text\"");
    log_write_fields(LOG_QP, LOG_LEVEL_DEBUG, fields, "too much");
    log_write(LOG_NET, LOG_LEVEL_ERROR, "%d", 5);
    dup2(saved, STDERR_FILENO);
    n = read(ends[0], out, size - 1);
    cr_assert_gt(n, 0);
    out[n] = 0;
    log_set_json(false);
    json_decref(fields);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    return (size_t)n;
}

Test(log, text_and_json)
{
    char out[1000], *second;
    json_t *o;

    logged(false, out, sizeof(out));
    cr_expect_str_eq(out, "pumiced: info: qp: a \"text\"\npumiced: error: net: 5\n");
    logged(true, out, sizeof(out));
    second = strchr(out, '\n');
    cr_assert_not_null(second);
    *second++ = 0;
    o = json_loads(out, 0, NULL);
    cr_assert_not_null(o);
    cr_expect_str_eq(json_string_value(json_object_get(o, "text")), "a \"text\"");
    cr_expect_str_eq(json_string_value(json_object_get(o, "area")), "qp");
    cr_expect_eq(json_integer_value(json_object_get(o, "qpn")), 17);
    json_decref(o);
    o = json_loads(second, 0, NULL);
    cr_assert_not_null(o);
    json_decref(o);
}
