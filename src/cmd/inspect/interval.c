// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/interval.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/targets.h"

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
    (void)sig;
    ended = 1;
}

/* True for counters that hold a maximum. The output shows the new maximum, not the growth. */
static bool is_level(const char *name)
{
    return strcmp(name, "max_sent_window") == 0 || strcmp(name, "max_rcvd_window") == 0;
}

/* The counters that have grown, with their growth. before NULL: all counters were 0. */
static json_t *growth(const json_t *before, const json_t *now)
{
    json_t *o = json_object();
    const char *name;
    const json_t *v;
    void *it;

    for (it = json_object_iter((json_t *)now); it; it = json_object_iter_next((json_t *)now, it)) {
        name = json_object_iter_key(it);
        v = json_object_iter_value(it);
        json_int_t old = json_integer_value(json_object_get(before, name));
        json_int_t grown = json_integer_value(v) - old;
        if (grown > 0)
            json_object_set_new(o, name, json_integer(is_level(name) ? json_integer_value(v) : grown));
    }
    return o;
}

/* The object in the list that has the same member `name` as `like`; NULL: none. */
static const json_t *find_same(const json_t *list, const json_t *like, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        if (json_equal(json_object_get(one, name), json_object_get(like, name)))
            return one;
    }
    return NULL;
}

static json_t *grown_qps(const json_t *before, const json_t *now)
{
    json_t *list = json_array(), *counters;
    const json_t *qp, *old;
    size_t i;

    json_array_foreach (json_object_get(now, "qps"), i, qp) {
        old = find_same(json_object_get(before, "qps"), qp, "qpn");
        counters = growth(json_object_get(old, "counters"), json_object_get(qp, "counters"));
        if (json_object_size(counters))
            json_array_append_new(list, json_pack("{s:O, s:O, s:O?, s:O}", "qpn", json_object_get(qp, "qpn"), "type",
                                                  json_object_get(qp, "type"), "comm", json_object_get(qp, "comm"),
                                                  "counters", counters));
        json_decref(counters);
    }
    return list;
}

static json_t *grown_devices(const json_t *before, const json_t *now)
{
    json_t *list = json_array();
    const json_t *device, *old;
    size_t i;

    json_array_foreach (json_object_get(now, "devices"), i, device) {
        old = find_same(json_object_get(before, "devices"), device, "name");
        json_array_append_new(list,
                              json_pack("{s:O, s:o, s:o}", "device", json_object_get(device, "name"), "counters",
                                        growth(json_object_get(old, "counters"), json_object_get(device, "counters")),
                                        "qps", grown_qps(old, device)));
    }
    return list;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_counters(const json_t *counters, double span)
{
    void *it;

    for (it = json_object_iter((json_t *)counters); it; it = json_object_iter_next((json_t *)counters, it)) {
        const char *name = json_object_iter_key(it);
        json_int_t v = json_integer_value(json_object_iter_value(it));

        if (is_level(name))
            printf("    %-24s %14" JSON_INTEGER_FORMAT "  (level)\n", name, v);
        else
            printf("    %-24s %14" JSON_INTEGER_FORMAT "  %12.1f/s\n", name, v, (double)v / span);
    }
}

static void print_host(const json_t *host, double span)
{
    const json_t *device, *qp;
    size_t i, k;

    json_array_foreach (json_object_get(host, "devices"), i, device) {
        if (json_object_get(host, "host"))
            printf("host %" JSON_INTEGER_FORMAT " ", json_integer_value(json_object_get(host, "host")));
        printf("%s\n", json_string_value(json_object_get(device, "device")));
        print_counters(json_object_get(device, "counters"), span);
        json_array_foreach (json_object_get(device, "qps"), k, qp) {
            const char *comm = json_string_value(json_object_get(qp, "comm"));

            printf("  QP 0x%06" PRIx64 " (%s%s%s)\n", (uint64_t)json_integer_value(json_object_get(qp, "qpn")),
                   json_string_value(json_object_get(qp, "type")), comm ? " of " : "", comm ? comm : "");
            print_counters(json_object_get(qp, "counters"), span);
        }
    }
}

static void print(const json_t *o, bool json)
{
    const json_t *host;
    size_t i;

    if (json) {
        json_dumpf(o, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        printf("--- %s, %.3g s\n", json_string_value(json_object_get(o, "time")),
               json_number_value(json_object_get(o, "seconds")));
        json_array_foreach (json_object_get(o, "hosts"), i, host)
            print_host(host, json_number_value(json_object_get(o, "seconds")));
    }
    fflush(stdout);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Fetches the daemons' documents, in the order of the targets. A daemon that does not answer gets null. Sets *answered
 * to the number of daemons that answered. */
static json_t *fetch_all(const struct targets *t, unsigned *answered)
{
    json_t *list = json_array();
    char path[SOCKET_PATH_MAX];

    *answered = 0;
    for (unsigned i = 0; i < t->n; i++) {
        targets_socket(t, i, path);
        json_t *status = control_fetch(path, PM_OP_STATUS, NULL, 0);
        *answered += status != NULL;
        json_array_append_new(list, status ? status : json_null());
    }
    return list;
}

static json_t *compare(const struct targets *t, const json_t *before, const json_t *now, double span)
{
    json_t *hosts = json_array(), *host;
    time_t clock = time(NULL);
    char stamp[32];
    struct tm tm;

    for (unsigned i = 0; i < t->n; i++) {
        const json_t *status = json_array_get(now, i);

        if (!json_is_object(status))
            continue;
        host = json_pack("{s:o}", "devices", grown_devices(json_array_get(before, i), status));
        if (t->first >= 0)
            json_object_set_new(host, "host", json_integer(t->first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&clock, &tm));
    return json_pack("{s:s, s:f, s:o}", "time", stamp, "seconds", span, "hosts", hosts);
}

int interval_print(const struct targets *t, double seconds, long number, bool json)
{
    unsigned answered;
    double then = seconds_now();
    json_t *before = fetch_all(t, &answered);

    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    for (long i = 0; (number == 0 || i < number) && answered && !ended; i++) {
        usleep((useconds_t)(seconds * 1e6));
        if (ended)
            break;
        double when = seconds_now();
        json_t *now = fetch_all(t, &answered);
        json_t *o = compare(t, before, now, when - then);
        if (answered)
            print(o, json);
        json_decref(o);
        json_decref(before);
        before = now;
        then = when;
    }
    json_decref(before);
    return answered == 0;
}
