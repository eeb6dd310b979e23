// SPDX-License-Identifier: BSD-2-Clause
/* pumice status: prints the status documents of daemons, as text or JSON. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/inspect/filter.h"
#include "src/cmd/inspect/interval.h"
#include "src/cmd/inspect/table.h"

struct status_options {
    bool json, all;
    const char *only; /* names of lists; NULL: everything */
    long pid; /* 0: all processes */
    double interval; /* seconds; 0: print the status once */
    long number; /* of intervals; 0: no limit */
    struct target_options target;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {"only", 'o', "LIST", 0, "Only these lists, separated by commas: " FILTER_LISTS, 0},
    {"pid", 'p', "PID", 0, "Only the objects of this process", 0},
    {"interval", 'i', "SECONDS", 0, "Print instead how much the counters have grown, every SECONDS seconds", 0},
    {"number", 'n', "N", 0, "End after N intervals", 0},
    {"all", 'a', NULL, 0, "Print everything, including counters that are 0 and the counters of each QP", 0},
    {0},
};

/* Counters of Open MPI's usnic transport that are only other names. The help text lists them, and the text output leaves
 * them out. X(name, the counter that it is) */
#define USNIC_ALIASES(X)                                                                                               \
    X(total_sends, sent_pkts)                                                                                          \
    X(fast_retrans, fast_retrans)                                                                                      \
    X(ack_sends, acks_sent)                                                                                            \
    X(total_recvs, rcvd_pkts)                                                                                          \
    X(dup_recvs, duplicate_request)                                                                                    \
    X(oow_low_recvs, duplicate_request)                                                                                \
    X(oow_high_recvs, out_of_seq_request)                                                                              \
    X(ack_recvs, acks_rcvd)                                                                                            \
    X(old_dup_acks, old_acks)                                                                                          \
    X(dup_acks, rcvd_seq_err)                                                                                          \
    X(crc_errors, rx_icrc_errors)                                                                                      \
    X(max_sent_window_size, max_sent_window)                                                                           \
    X(max_rcvd_window_size, max_rcvd_window)

#define TEXT(name, own) " " #name "=" #own
static const char doc[] =
    "Shows the devices of a running daemon, the programs that use them, their objects, QP states "
    "and counters, and the connections that programs make by rdma_cm. In a lab, shows all hosts.\v"
    "Examples:\n"
    "  pumice status\n"
    "  pumice status --interval 10\n"
    "  pumice run --hosts 2 -- sh -c './my_test.sh; pumice status --json > counters.json'\n\n"
    "Some of the usnic_counters are only other names of counters of the device, and the text "
    "output leaves them out:" USNIC_ALIASES(TEXT) "\n";
#undef TEXT

/* The columns of a table that would be too wide with all of them. --all and --json also print the others. */
static const struct table_columns columns[] = {
    {"qps", "qpn session comm type state requester dest_qpn dgid sq_posted rq_posted inflight_bytes srtt_us "
            "deadline_us broken"},
    {"listeners", "id pid comm space address port device backlog waiting"},
    {"connections", "id pid comm space type state device local remote qpn dest_qpn retries"},
    {"failures", "ago_s pid comm event status reject_text local remote retries"},
    {NULL, NULL},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct status_options *o = state->input;
    char *end;

    switch (key) {
    case 'o':
        if (!filter_knows(arg))
            argp_error(state, "--only: invalid value \"%s\": expected one or more of " FILTER_LISTS, arg);
        o->only = arg;
        break;
    case 'p':
        o->pid = parse_number(arg, 1, INT_MAX);
        if (o->pid < 0)
            argp_error(state, "--pid: invalid value \"%s\": expected a process number", arg);
        break;
    case 'i':
        o->interval = strtod(arg, &end);
        if (*end || end == arg || !(o->interval >= 0.05 && o->interval <= 3600))
            argp_error(state, "--interval: invalid value \"%s\": expected a number of seconds from 0.05 to 3600", arg);
        break;
    case 'n':
        o->number = parse_number(arg, 1, 1000000);
        if (o->number < 0)
            argp_error(state, "--number: invalid value \"%s\": expected a number from 1 to 1000000", arg);
        break;
    case 'j':
        o->json = true;
        break;
    case 'a':
        o->all = true;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s': pumice status takes no arguments", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Removes the members that only --all and --json print: the counters under the names of other drivers, and the sums
 * that pumice run reads at its end. */
static void remove_details(json_t *status)
{
    static const char *const names[] = {"hw_counters", "mlx5_counters", "port_counters", "usnic_counters", "usage"};
    json_t *device;
    size_t i;

    json_array_foreach (json_object_get(status, "devices"), i, device) {
        for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
            json_object_del(device, names[n]);
    }
}

/* Removes what the text would show twice, of a device or a QP. */
static void remove_aliases_of(const json_t *object)
{
    json_t *usnic = json_object_get(object, "usnic_counters");

#define X(name, own) json_object_del(usnic, #name);
    USNIC_ALIASES(X)
#undef X
}

static void remove_aliases(const json_t *status)
{
    json_t *device, *qp;
    size_t i, k;

    json_array_foreach (json_object_get(status, "devices"), i, device) {
        remove_aliases_of(device);
        json_array_foreach (json_object_get(device, "qps"), k, qp)
            remove_aliases_of(qp);
    }
}

/* Has no program used connection management, and has no message come? */
static bool is_unused(const json_t *cm)
{
    json_t *counters = json_object_get(cm, "counters"), *v;
    bool used = json_integer_value(json_object_get(cm, "channels")) || json_is_false(json_object_get(cm, "answers")) ||
                json_array_size(json_object_get(cm, "failures"));
    const char *name;

    json_object_foreach (counters, name, v)
        used |= json_integer_value(v) != 0;
    return !used;
}

/* Removes the quotas without a limit, which are those of root and the user of the daemon, the counts of control
 * requests, and connection management while nobody has used it. */
static void remove_lists(json_t *status)
{
    json_t *quotas = json_object_get(status, "quotas"), *device;
    size_t n;

    json_object_del(status, "control");
    if (is_unused(json_object_get(status, "cm")))
        json_object_del(status, "cm");
    json_array_foreach (json_object_get(status, "devices"), n, device)
        json_object_del(device, "control");

    for (size_t i = json_array_size(quotas); i-- > 0;) {
        if (json_is_null(json_object_get(json_array_get(quotas, i), "limit")))
            json_array_remove(quotas, i);
    }
}

static void print_host(const struct targets *t, unsigned i, const char *path, const json_t *status, bool all)
{
    if (i)
        putchar('\n');
    if (t->first >= 0)
        printf("=== host %u (%s)\n", (unsigned)t->first + i, path);
    else
        printf("=== %s\n", path);
    table_print(stdout, status, columns, all);
}

int cmd_status(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, target_options_child, NULL, NULL};
    struct status_options o = {.target = TARGET_OPTIONS_NONE};
    json_t *hosts = json_array(), *root;
    char path[SOCKET_PATH_MAX];
    struct targets t;
    int code = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (target_options_find(&o.target, &t) != 0)
        return 1;
    if (o.interval > 0) {
        json_decref(hosts);
        return interval_print(&t, o.interval, o.number, o.json);
    }
    for (unsigned i = 0; i < t.n; i++) {
        targets_socket(&t, i, path);
        json_t *status = control_fetch(path, PM_OP_STATUS, NULL, 0);
        if (!status) {
            code = 1;
            continue;
        }
        if (o.pid)
            filter_process(status, o.pid);
        if (o.only)
            filter_lists(status, o.only);
        if (!o.json && !o.all)
            remove_details(status);
        if (!o.json && !o.all && !o.only)
            remove_lists(status);
        if (!o.json)
            remove_aliases(status);
        if (!o.json)
            print_host(&t, i, path, status, o.all);
        json_t *host = json_pack("{s:s, s:o}", "socket", path, "status", status);
        if (t.first >= 0)
            json_object_set_new(host, "host", json_integer(t.first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    root = json_pack("{s:o}", "hosts", hosts);
    if (o.json) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(root);
    return code;
}
