// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/unkind.h"
#include "daemon/core/base/types.h"
#include "daemon/core/cm/cm.h"
#include "daemon/fault/fault.h"
#include "daemon/net/io_counters.h"
#include "daemon/net/socket_owner.h"

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
    UNKIND_COUNTERS(X)
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

/* Writes the packets that each device has sent, by class. */
static void put_classes(FILE *to, const json_t *devices)
{
    const json_t *d, *n;
    const char *name;
    size_t i;

    put_head(to, "pumice_", "tx_class_packets", "packets handed out for sending, by class", "counter");
    json_array_foreach (devices, i, d) {
        json_object_foreach ((json_t *)(uintptr_t)json_object_get(d, "tx_classes"), name, n) {
            fputs("pumice_tx_class_packets_total{", to);
            put_label(to, "device", word(d, "name"));
            fputc(',', to);
            put_label(to, "class", name);
            fprintf(to, "} %" JSON_INTEGER_FORMAT "\n", json_integer_value(n));
        }
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
        put_head(to, "pumice_", lists[k],
                 "how many there are now; for the daemon's user and root of all users, for others their own", "gauge");
        json_array_foreach (devices, i, d) {
            fprintf(to, "pumice_%s{", lists[k]);
            put_label(to, "device", word(d, "name"));
            fprintf(to, "} %zu\n", json_array_size(json_object_get(d, lists[k])));
        }
    }
}

/* Connection management: one instance serves all devices. */
static void put_cm(FILE *to, const json_t *cm)
{
    const json_t *values = json_object_get(cm, "counters"), *n;
    const char *state;

    if (!json_is_true(json_object_get(cm, "answers")))
        return;
#define X(name, text)                                                                                                  \
    put_head(to, "pumice_cm_", #name, text, "counter");                                                                \
    fprintf(to, "pumice_cm_" #name "_total %" JSON_INTEGER_FORMAT "\n",                                                \
            json_integer_value(json_object_get(values, #name)));
    CM_COUNTERS(X)
#undef X
    put_head(to, "pumice_", "cm_ids", "IDs of connection management; for the daemon's user and root of all users",
             "gauge");
    json_object_foreach ((json_t *)(uintptr_t)json_object_get(cm, "states"), state, n) {
        fputs("pumice_cm_ids{", to);
        put_label(to, "state", state);
        fprintf(to, "} %" JSON_INTEGER_FORMAT "\n", json_integer_value(n));
    }
}

char *metrics_text(const json_t *status)
{
    const json_t *devices = json_object_get(status, "devices");
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return NULL;
    for (unsigned k = 0; k < NUM_COUNTERS; k++) {
        put_devices(to, devices, k);
        put_qps(to, devices, k);
    }
    put_classes(to, devices);
    put_gauges(to, devices);
    put_cm(to, json_object_get(status, "cm"));
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* --- the server -------------------------------------------------------------------------------- */

/* The latest text for one user, and until when it is given out again. Any local user may ask, as often as it likes. So
 * a text is new only if making it leaves the processors to others for most of the time. */
struct page {
    struct user user;
    char *text; /* NULL: none */
    uint64_t fresh_until; /* clock_ns */
};
#define PAGES 8u /* users who ask in turn */
/* A text is given out again for this many times as long as it took to make it. */
#define REUSE 4u

struct metrics {
    struct MHD_Daemon *http; /* with a thread of its own, because making the text may take a second; NULL: not yet */
    int listening; /* the socket, until the server has it; -1: none */
    json_t *(*objects)(void *ctx, const struct user *u);
    void *ctx;
    union addr at; /* where it listens */
    int diag; /* asks the kernel for the user of a connection; negative: it can't, so everybody is unknown */
    struct page page[PAGES];
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

/* The user at the other end of the connection. */
static struct user asker(const struct metrics *m, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    union addr from;
    uid_t uid;

    if (!info || m->diag < 0)
        return USER_UNKNOWN;
    memcpy(&from, info->client_addr, m->at.sa.sa_family == AF_INET ? sizeof(from.v4) : sizeof(from.v6));
    return socket_owner(m->diag, &from, &m->at, &uid) == 0 ? user_of(uid) : USER_UNKNOWN;
}

static bool is_same(const struct user *a, const struct user *b)
{
    return a->known == b->known && a->administers == b->administers && (!a->known || a->uid == b->uid);
}

/* The page of the user, or else the one that is to be given up for it: the oldest one. */
static struct page *page_of(struct metrics *m, const struct user *u)
{
    struct page *oldest = &m->page[0];

    for (unsigned i = 0; i < PAGES; i++) {
        if (m->page[i].text && is_same(&m->page[i].user, u))
            return &m->page[i];
        if (m->page[i].fresh_until < oldest->fresh_until)
            oldest = &m->page[i];
    }
    oldest->fresh_until = 0;
    return oldest;
}

/* The text for a user: a new one unless the latest one will do. NULL: out of memory. */
static char *text_for(struct metrics *m, const struct user *u)
{
    struct page *p = page_of(m, u);
    uint64_t begin = clock_ns();

    if (p->text && begin < p->fresh_until)
        return p->text;
    json_t *status = m->objects(m->ctx, u);
    free(p->text);
    p->user = *u;
    p->text = metrics_text(status);
    json_decref(status);
    uint64_t end = clock_ns();
    p->fresh_until = end + REUSE * (end - begin);
    return p->text;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    static char not_found[] = "not found: the only page is /metrics\n",
                not_allowed[] = "method not allowed: use GET or HEAD\n", failed[] = "out of memory\n";
    struct metrics *m = cls;

    (void)version;
    (void)upload;
    (void)state;
    *upload_size = 0;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer(c, MHD_HTTP_METHOD_NOT_ALLOWED, not_allowed, "text/plain");
    if (strcmp(url, "/metrics") != 0)
        return answer(c, MHD_HTTP_NOT_FOUND, not_found, "text/plain");
    const struct user u = asker(m, c);
    char *text = text_for(m, &u);
    if (!text)
        return answer(c, MHD_HTTP_INTERNAL_SERVER_ERROR, failed, "text/plain");
    return answer(c, MHD_HTTP_OK, text, "text/plain; version=0.0.4");
}

/* Returns the descriptor or -errno. */
static int listen_at(const union addr *at)
{
    const int on = 1;
    int fd = socket(at->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 && bind(fd, &at->sa, addr_len(at)) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

struct metrics *metrics_open(const union addr *at, json_t *(*objects)(void *ctx, const struct user *u), void *ctx,
                             char why[ERROR_TEXT_MAX])
{
    struct metrics *m = calloc(1, sizeof(*m));
    char text[ADDR_TEXT_MAX];

    if (!m) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    m->objects = objects;
    m->ctx = ctx;
    m->at = *at;
    m->diag = socket_owner_open();
    m->listening = listen_at(at);
    if (m->listening < 0) {
        snprintf(why, ERROR_TEXT_MAX, "metrics: cannot listen at port %u of %s: %s", addr_port(at), addr_text(at, text),
                 strerror(-m->listening));
        metrics_close(m);
        return NULL;
    }
    return m;
}

int metrics_start(struct metrics *m, char why[ERROR_TEXT_MAX])
{
    unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD;
    sigset_t all, old;

    if (!m)
        return 0;
    if (m->at.sa.sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    m->http = MHD_start_daemon(flags, 0, NULL, NULL, on_request, m, MHD_OPTION_LISTEN_SOCKET, m->listening,
                               MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
                               MHD_OPTION_END);
    int rc = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (m->http) {
        m->listening = -1; /* it belongs to the server now */
        return 0;
    }
    snprintf(why, ERROR_TEXT_MAX, "metrics: cannot start the server: %s", strerror(rc));
    return -(rc ? rc : ENOMEM);
}

void metrics_close(struct metrics *m)
{
    if (!m)
        return;
    if (m->http)
        MHD_stop_daemon(m->http); /* waits for the request that its thread answers */
    if (m->listening >= 0)
        close(m->listening);
    if (m->diag >= 0)
        close(m->diag);
    for (unsigned i = 0; i < PAGES; i++)
        free(m->page[i].text);
    free(m);
}
