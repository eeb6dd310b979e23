// SPDX-License-Identifier: BSD-2-Clause
/* pumice top: prints tables of devices, connection management and queue pairs with rates, and repeats them at regular
 * times. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/columns.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/json_member.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/inspect/diagnose.h"

#define ROWS_DEFAULT 40 /* lines of the output if it is not a terminal */
#define TEXTS_MAX 6
#define RATES_MAX 5

struct top_options {
    struct target_options target;
    bool batch;
    long count; /* of tables; 0: no limit */
    double delay; /* seconds */
};

static const struct argp_option options[] = {
    {"delay", 'd', "SECONDS", 0, "Time between two tables (1)", 0},
    {"number", 'n', "N", 0, "End after N tables", 0},
    {"batch", 'b', NULL, 0, "Print all rows, one table below the other (always, if the output is not a terminal)", 0},
    {0},
};

static const char doc[] =
    "Shows devices, connections by rdma_cm and queue pairs of running daemons with rates, the busiest first, and what "
    "each queue pair waits for; in a lab, of all hosts. Ctrl-C ends it.\v"
    "Example:\n"
    "  pumice top -d 0.5\n"
    "  pumice top -b -n 10 -d 1 > rates.txt\n\n"
    "The first table has no rates. The last column is a code of pumice-why(1), which explains it.";

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
    (void)sig;
    ended = 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct top_options *o = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case 'd':
        o->delay = strtod(arg, &end);
        if (*end || end == arg || !(o->delay >= 0.05 && o->delay <= 3600))
            argp_error(state, "--delay: invalid value \"%s\": expected seconds from 0.05 to 3600", arg);
        break;
    case 'n':
        o->count = parse_number(arg, 1, 1000000);
        if (o->count < 0)
            argp_error(state, "--number: invalid value \"%s\": expected a number from 1 to 1000000", arg);
        break;
    case 'b':
        o->batch = true;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\": pumice top takes no arguments", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* --- rates ----------------------------------------------------------------------------------------------------- */

/* A row for a device, the connection management of a host, or a queue pair. */
struct row {
    char text[TEXTS_MAX][96]; /* the cells before and after the rates */
    uint64_t counter[RATES_MAX]; /* of the columns of its form */
    double rate[RATES_MAX]; /* their rates; negative: unknown */
    uint64_t key; /* made of host, device and queue pair; the same row of the next table has the same key */
};
struct table {
    struct row *row;
    size_t n, room;
    double when;
};
/* The state of all hosts at one time. */
struct look {
    struct table devices, cms, qps;
    unsigned hosts; /* hosts that answered */
};

static struct row *add_row(struct table *t)
{
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->row = realloc(t->row, t->room * sizeof(t->row[0]));
        if (!t->row) {
            say("out of memory");
            exit(1);
        }
    }
    return memset(&t->row[t->n++], 0, sizeof(struct row));
}

static uint64_t count(const json_t *counters, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(counters, name));
}

/* In the order of packet_rates. */
static void fill(struct row *r, const json_t *counters)
{
    r->counter[0] = count(counters, "sent_pkts");
    r->counter[1] = count(counters, "rcvd_pkts");
    r->counter[2] = count(counters, "sent_bytes");
    r->counter[3] = count(counters, "rcvd_bytes");
    r->counter[4] =
        count(counters, "fast_retrans") + count(counters, "probe_retrans") + count(counters, "timeout_retrans");
}

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* Sorts both tables by their keys. */
static void set_rates(struct table *now, struct table *before)
{
    double span = now->when - before->when;
    size_t at = 0;

    if (now->n)
        qsort(now->row, now->n, sizeof(now->row[0]), by_key);
    if (before->n)
        qsort(before->row, before->n, sizeof(before->row[0]), by_key);
    for (size_t i = 0; i < now->n; i++) {
        struct row *r = &now->row[i];

        while (at < before->n && before->row[at].key < r->key)
            at++;
        const struct row *old = at < before->n && before->row[at].key == r->key ? &before->row[at] : NULL;
        for (unsigned k = 0; k < RATES_MAX; k++) {
            bool known = old && span > 0 && r->counter[k] >= old->counter[k];
            r->rate[k] = known ? (double)(r->counter[k] - old->counter[k]) / span : -1;
        }
    }
}

static double busy(const struct row *r)
{
    return r->rate[0] >= 0 ? r->rate[0] + r->rate[1] : 0;
}

static int busier(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (busy(x) != busy(y))
        return busy(x) < busy(y) ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* --- looking --------------------------------------------------------------------------------------------------- */

/* A member as text, "-" if it is missing. An XRC target, for example, has no program. */
static const char *word(const json_t *o, const char *name)
{
    const char *s = member_text(o, name);

    return *s ? s : "-";
}

__attribute__((format(printf, 3, 4))) static void set_text(struct row *r, unsigned i, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(r->text[i], sizeof(r->text[i]), format, ap);
    va_end(ap);
}

static void add_qps(struct look *l, const json_t *status, const json_t *device, int host, size_t index)
{
    const json_t *qp;
    size_t i;

    json_array_foreach (json_object_get(device, "qps"), i, qp) {
        struct diagnose_input s = {.status = status, .device = device, .qp = qp};
        json_t *why = diagnose_qp(&s);
        struct row *r = add_row(&l->qps);
        json_int_t qpn = json_integer_value(json_object_get(qp, "qpn"));

        fill(r, json_object_get(qp, "counters"));
        r->key = (uint64_t)(unsigned)(host + 1) << 48 | (uint64_t)index << 32 | (uint64_t)qpn;
        set_text(r, 0, "%d", host < 0 ? 0 : host);
        set_text(r, 1, "0x%06" PRIx64, (uint64_t)qpn);
        set_text(r, 2, "%s", word(qp, "type"));
        set_text(r, 3, "%s", word(qp, "state"));
        set_text(r, 4, "%s", word(qp, "comm"));
        set_text(r, 5, "%s", word(json_array_get(why, 0), "code"));
        json_decref(why);
    }
}

/* A host that never used connection management has no row. */
static void add_cm(struct look *l, const json_t *status, int host)
{
    const json_t *cm = json_object_get(status, "cm"), *states = json_object_get(cm, "states");
    const json_t *counters = json_object_get(cm, "counters");
    static const char *const of_counters[] = {"established", "rej_received", "timeouts", "retries"};
    uint64_t used = count(cm, "channels");

    for (unsigned i = 0; i < sizeof(of_counters) / sizeof(of_counters[0]); i++)
        used += count(counters, of_counters[i]);
    if (!used)
        return;
    struct row *r = add_row(&l->cms);
    for (unsigned i = 0; i < sizeof(of_counters) / sizeof(of_counters[0]); i++)
        r->counter[i] = count(counters, of_counters[i]);
    r->key = (uint64_t)(unsigned)(host + 1) << 48;
    set_text(r, 0, "%d", host < 0 ? 0 : host);
    set_text(r, 1, "rdma_cm");
    set_text(r, 2, "established %" PRIu64 ", other IDs %zu, listeners %zu", count(states, "established"),
             json_array_size(json_object_get(cm, "connections")) - (size_t)count(states, "established"),
             json_array_size(json_object_get(cm, "listeners")));
}

static void add_host(struct look *l, const json_t *status, int host)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(status, "devices"), i, device) {
        struct row *r = add_row(&l->devices);

        fill(r, json_object_get(device, "counters"));
        r->key = (uint64_t)(unsigned)(host + 1) << 48 | (uint64_t)i << 32;
        set_text(r, 0, "%d", host < 0 ? 0 : host);
        set_text(r, 1, "%s", word(device, "name"));
        set_text(r, 2, "%s, %s, %zu queue pairs", word(device, "address"), word(device, "port"),
                 json_array_size(json_object_get(device, "qps")));
        add_qps(l, status, device, host, i);
    }
    add_cm(l, status, host);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void look(struct look *l, const struct targets *t)
{
    char path[SOCKET_PATH_MAX];

    *l = (struct look){.hosts = 0};
    l->devices.when = l->cms.when = l->qps.when = seconds();
    for (unsigned i = 0; i < t->n; i++) {
        targets_socket(t, i, path);
        json_t *status = control_fetch(path, PM_OP_STATUS, NULL, 0);
        if (!status)
            continue;
        l->hosts++;
        add_host(l, status, t->first < 0 ? -1 : t->first + (int)i);
        json_decref(status);
    }
}

static void forget(struct look *l)
{
    free(l->devices.row);
    free(l->cms.row);
    free(l->qps.row);
    *l = (struct look){.hosts = 0};
}

/* --- showing --------------------------------------------------------------------------------------------------- */

struct rate_column {
    const char *heading;
    unsigned width, decimals;
    double unit;
};
static const struct rate_column packet_rates[RATES_MAX] = {{"tx pkt/s", 10, 0, 1},
                                                           {"rx pkt/s", 10, 0, 1},
                                                           {"tx MB/s", 9, 1, 1e6},
                                                           {"rx MB/s", 9, 1, 1e6},
                                                           {"resent/s", 9, 0, 1}};
static const struct rate_column cm_rates[] = {
    {"connect/s", 10, 0, 1}, {"reject/s", 10, 0, 1}, {"timeout/s", 9, 0, 1}, {"resent/s", 9, 0, 1}};

/* The columns with text. `before` of them stand before the rates. Their fixed widths keep the columns in place from one
 * table to the next. */
struct form {
    const struct rate_column *rate;
    unsigned rates, texts, before;
    struct {
        const char *heading;
        unsigned width, flags;
    } text[TEXTS_MAX];
};

static const struct form device_form = {
    .rate = packet_rates,
    .rates = RATES_MAX,
    .texts = 3,
    .before = 2,
    .text = {{"host", 4, COLUMNS_RIGHT}, {"device", 23, COLUMNS_CUT}, {"", 0, COLUMNS_CUT}},
};
static const struct form cm_form = {
    .rate = cm_rates,
    .rates = sizeof(cm_rates) / sizeof(cm_rates[0]),
    .texts = 3,
    .before = 2,
    .text = {{"host", 4, COLUMNS_RIGHT}, {"connections", 23, COLUMNS_CUT}, {"", 0, COLUMNS_CUT}},
};
static const struct form qp_form = {
    .rate = packet_rates,
    .rates = RATES_MAX,
    .texts = 6,
    .before = 4,
    .text = {{"host", 4, COLUMNS_RIGHT},
             {"QP", 8, 0},
             {"type", 8, 0},
             {"state", 5, 0},
             {"program", 15, COLUMNS_CUT},
             {"waits for", 0, COLUMNS_CUT}},
};

static void show_table(const struct table *t, const struct form *f, bool batch, const char *eol, size_t rows)
{
    struct columns columns;

    columns_init(&columns, " ", true);
    if (!batch)
        columns_fit_terminal(&columns);
    for (unsigned i = 0; i < f->texts; i++) {
        for (unsigned k = 0; i == f->before && k < f->rates; k++)
            columns_add(&columns, f->rate[k].heading, f->rate[k].width, COLUMNS_RIGHT);
        columns_add(&columns, f->text[i].heading, f->text[i].width, f->text[i].flags);
    }
    for (size_t n = 0; n < t->n && n < rows; n++) {
        const struct row *r = &t->row[n];

        columns_row(&columns);
        for (unsigned i = 0; i < f->texts; i++) {
            for (unsigned k = 0; i == f->before && k < f->rates; k++) {
                if (r->rate[k] < 0)
                    columns_cell(&columns, "-");
                else
                    columns_cell(&columns, "%.*f", (int)f->rate[k].decimals, r->rate[k] / f->rate[k].unit);
            }
            columns_cell(&columns, "%s", r->text[i]);
        }
    }
    columns_print(&columns, stdout, "", eol);
    columns_fini(&columns);
}

static size_t terminal_rows(void)
{
    struct winsize w;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row ? w.ws_row : ROWS_DEFAULT;
}

static void show(const struct look *l, bool batch)
{
    const char *eol = batch ? "" : "\033[K"; /* clears the rest of the line */
    size_t rows = batch ? SIZE_MAX : terminal_rows(), used = l->devices.n + 4 + (l->cms.n ? l->cms.n + 1 : 0);
    time_t now = time(NULL);
    char stamp[32];

    strftime(stamp, sizeof(stamp), "%H:%M:%S", localtime(&now));
    if (!batch)
        fputs("\033[H", stdout);
    printf("pumice top  %s  %zu devices, %zu queue pairs%s\n", stamp, l->devices.n, l->qps.n, eol);
    show_table(&l->devices, &device_form, batch, eol, rows);
    if (l->cms.n)
        show_table(&l->cms, &cm_form, batch, eol, rows);
    show_table(&l->qps, &qp_form, batch, eol, rows > used ? rows - used : 1);
    fputs(batch ? "\n" : "\033[J", stdout);
    fflush(stdout);
}

int cmd_top(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, target_options_child, NULL, NULL};
    struct top_options o = {.target = TARGET_OPTIONS_NONE, .delay = 1};
    struct look before = {.hosts = 0}, now;
    struct targets t;
    unsigned hosts = 1;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (target_options_find(&o.target, &t) != 0)
        return 1;
    o.batch |= !isatty(STDOUT_FILENO);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    if (!o.batch)
        fputs("\033[2J", stdout);
    for (long i = 0; (o.count == 0 || i < o.count) && !ended && hosts; i++) {
        if (i)
            usleep((useconds_t)(o.delay * 1e6));
        if (ended)
            break;
        look(&now, &t);
        set_rates(&now.devices, &before.devices);
        set_rates(&now.cms, &before.cms);
        set_rates(&now.qps, &before.qps);
        if (now.qps.n)
            qsort(now.qps.row, now.qps.n, sizeof(now.qps.row[0]), busier);
        hosts = now.hosts;
        if (hosts)
            show(&now, o.batch);
        forget(&before);
        before = now;
    }
    forget(&before);
    return hosts == 0;
}
