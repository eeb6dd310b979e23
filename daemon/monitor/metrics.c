// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/base/types.h"
#include "daemon/net/fault.h"
#include "daemon/net/io_counters.h"

#define CONNECTIONS 8u
#define TIMEOUT_S 5u

/* --- the text ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *name, *text;
} counters[] = {
#define X(name, text) {#name, text},
    ENGINE_COUNTERS(X)
    IO_COUNTERS(X)
    FAULT_COUNTERS(X)
#undef X
};
/* clang-format on */
#define NUM_COUNTERS (sizeof(counters) / sizeof(counters[0]))

/* Writes a label. Backslash, quote and newline in the value are escaped. */
static void put_label(FILE *to, const char *name, const char *value)
{
    fprintf(to, "%s=\"", name);
    for (; value && *value; value++) {
        if (*value == '\\' || *value == '"')
            fputc('\\', to);
        if (*value == '\n')
            fputs("\\n", to);
        else
            fputc(*value, to);
    }
    fputc('"', to);
}

static const char *word(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

/* True for a counter that is a maximum. The others are sums. */
static bool is_highest(const char *name)
{
    return strncmp(name, "max_", 4) == 0;
}

static void put_head(FILE *to, const char *prefix, const char *name, const char *text, const char *type)
{
    const char *suffix = strcmp(type, "counter") == 0 ? "_total" : "";

    fprintf(to, "# HELP %s%s%s %s\n# TYPE %s%s%s %s\n", prefix, name, suffix, text, prefix, name, suffix, type);
}

static void put_devices(FILE *to, const json_t *devices, unsigned k)
{
    bool highest = is_highest(counters[k].name);
    const json_t *d;
    size_t i;

    put_head(to, "pumice_", counters[k].name, counters[k].text, highest ? "gauge" : "counter");
    json_array_foreach (devices, i, d) {
        if (!json_object_get(d, "counters")) /* its thread does not answer */
            continue;
        fprintf(to, "pumice_%s%s{", counters[k].name, highest ? "" : "_total");
        put_label(to, "device", word(d, "name"));
        fprintf(to, "} %" JSON_INTEGER_FORMAT "\n",
                json_integer_value(json_object_get(json_object_get(d, "counters"), counters[k].name)));
    }
}

static void put_qp(FILE *to, const json_t *d, const json_t *qp)
{
    fprintf(to, "{");
    put_label(to, "device", word(d, "name"));
    fprintf(to, ",qpn=\"0x%06" PRIx64 "\",", (uint64_t)json_integer_value(json_object_get(qp, "qpn")));
    put_label(to, "type", word(qp, "type"));
    fputc(',', to);
    put_label(to, "program", word(qp, "comm"));
    fputs("} ", to);
}

/* Writes a counter of all QPs for which it is not 0. */
static void put_qps(FILE *to, const json_t *devices, unsigned k)
{
    bool highest = is_highest(counters[k].name), head = false;
    const json_t *d, *qp, *v;
    size_t i, j;

    json_array_foreach (devices, i, d) {
        json_array_foreach (json_object_get(d, "qps"), j, qp) {
            v = json_object_get(json_object_get(qp, "counters"), counters[k].name);
            if (!v)
                continue;
            if (!head)
                put_head(to, "pumice_qp_", counters[k].name, counters[k].text, highest ? "gauge" : "counter");
            head = true;
            fprintf(to, "pumice_qp_%s%s", counters[k].name, highest ? "" : "_total");
            put_qp(to, d, qp);
            fprintf(to, "%" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
        }
    }
}

static void put_gauges(FILE *to, const json_t *devices)
{
    static const char *const lists[] = {"sessions", "qps", "cqs", "mrs", "srqs", "mws", "xrcds"};
    const json_t *d;
    size_t i;

    put_head(to, "pumice_", "port_up", "whether the interface is up", "gauge");
    json_array_foreach (devices, i, d) {
        fputs("pumice_port_up{", to);
        put_label(to, "device", word(d, "name"));
        fprintf(to, "} %d\n", strcmp(word(d, "port"), "active") == 0);
    }
    for (unsigned k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        put_head(to, "pumice_", lists[k], "how many there are now", "gauge");
        json_array_foreach (devices, i, d) {
            fprintf(to, "pumice_%s{", lists[k]);
            put_label(to, "device", word(d, "name"));
            fprintf(to, "} %zu\n", json_array_size(json_object_get(d, lists[k])));
        }
    }
}

char *metrics_text(const json_t *devices)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return NULL;
    for (unsigned k = 0; k < NUM_COUNTERS; k++) {
        put_devices(to, devices, k);
        put_qps(to, devices, k);
    }
    put_gauges(to, devices);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* --- the server -------------------------------------------------------------------------------- */

struct metrics {
    struct ev_loop *loop;
    struct MHD_Daemon *http;
    ev_io ready; /* its epoll descriptor is readable */
    ev_timer again; /* runs while it waits for slow clients */
    json_t *(*devices)(void *ctx);
    void *ctx;
};

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, char *text, const char *type)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result rc;

    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    rc = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    static char not_found[] = "not found: the only page is /metrics\n",
                not_allowed[] = "method not allowed: use GET or HEAD\n", failed[] = "out of memory\n";
    struct metrics *m = cls;
    enum MHD_Result rc;

    (void)version;
    (void)upload;
    (void)state;
    *upload_size = 0;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer(c, MHD_HTTP_METHOD_NOT_ALLOWED, not_allowed, "text/plain");
    if (strcmp(url, "/metrics") != 0)
        return answer(c, MHD_HTTP_NOT_FOUND, not_found, "text/plain");
    json_t *devices = m->devices(m->ctx);
    char *text = metrics_text(devices);
    json_decref(devices);
    if (!text)
        return answer(c, MHD_HTTP_INTERNAL_SERVER_ERROR, failed, "text/plain");
    rc = answer(c, MHD_HTTP_OK, text, "text/plain; version=0.0.4");
    free(text);
    return rc;
}

static void serve(struct metrics *m)
{
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(m->http);
    ev_timer_stop(m->loop, &m->again);
    if (MHD_get_timeout(m->http, &ms) == MHD_YES) {
        ev_timer_set(&m->again, (double)ms / 1e3 + 0.001, 0);
        ev_timer_start(m->loop, &m->again);
    }
}

static void on_ready(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    serve(w->data);
}

static void on_again(struct ev_loop *loop, ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    serve(w->data);
}

struct metrics *metrics_open(struct ev_loop *loop, const union addr *at, json_t *(*devices)(void *ctx), void *ctx,
                             char why[ERROR_TEXT_MAX])
{
    unsigned flags = MHD_USE_EPOLL | (at->sa.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    struct metrics *m = calloc(1, sizeof(*m));
    const union MHD_DaemonInfo *info;
    char text[ADDR_TEXT_MAX];

    if (!m) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    m->loop = loop;
    m->devices = devices;
    m->ctx = ctx;
    m->http = MHD_start_daemon(flags, addr_port(at), NULL, NULL, on_request, m, MHD_OPTION_SOCK_ADDR, &at->sa,
                               MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
                               MHD_OPTION_END);
    info = m->http ? MHD_get_daemon_info(m->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        snprintf(why, ERROR_TEXT_MAX, "metrics: cannot listen at port %u of %s: %s", addr_port(at), addr_text(at, text),
                 strerror(errno));
        if (m->http)
            MHD_stop_daemon(m->http);
        free(m);
        return NULL;
    }
    ev_io_init(&m->ready, on_ready, info->epoll_fd, EV_READ);
    ev_timer_init(&m->again, on_again, 0, 0);
    m->ready.data = m->again.data = m;
    ev_io_start(loop, &m->ready);
    return m;
}

void metrics_close(struct metrics *m)
{
    if (!m)
        return;
    ev_io_stop(m->loop, &m->ready);
    ev_timer_stop(m->loop, &m->again);
    MHD_stop_daemon(m->http);
    free(m);
}
