// SPDX-License-Identifier: BSD-2-Clause
/* pumice why: explains what a queue pair waits for or why it failed, and why connections of rdma_cm do not come about. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/inspect/diagnose.h"
#include "src/cmd/inspect/why_cm.h"

struct why_options {
    struct target_options target;
    bool json, all, connections;
    uint32_t qpn;
};

static const struct argp_option options[] = {
    {"all", 'a', NULL, 0, "Explain every queue pair and every connection", 0},
    {"connections", 'c', NULL, 0, "Explain the connections that programs make by rdma_cm, and those that failed", 0},
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {0},
};

static const char doc[] =
    "Explains what a queue pair of a running program is waiting for, or why it has failed. In a lab, the command "
    "searches all hosts, and also looks at the other end of the connection. With --connections, explains why "
    "connections of rdma_cm (rdma_connect, rdma_listen) wait, and why the latest ones failed.\v"
    "Examples:\n"
    "  pumice why 0x4711\n"
    "  pumice why --all\n"
    "  pumice why --connections\n\n"
    "pumice status lists the numbers of queue pairs.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct why_options *o = state->input;
    unsigned long n;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case 'a':
        o->all = true;
        break;
    case 'c':
        o->connections = true;
        break;
    case 'j':
        o->json = true;
        break;
    case ARGP_KEY_ARG:
        n = strtoul(arg, &end, 0);
        if (o->qpn || o->all || o->connections)
            argp_error(state, "unexpected argument '%s': give one queue pair number, or --all or --connections", arg);
        if (*end || arg[0] < '0' || arg[0] > '9' || n == 0 || n > 0xffffff)
            argp_error(state, "'%s' is not a queue pair number: expected 1 to 16777215, or 0x1 to 0xffffff", arg);
        o->qpn = (uint32_t)n;
        break;
    case ARGP_KEY_END:
        if (!o->qpn && !o->all && !o->connections)
            argp_error(state, "no queue pair given (pumice status lists them; --all explains all; --connections "
                              "explains connections of rdma_cm)");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* --- status documents --------------------------------------------------------------------------------------------- */

/* Has the device the GID in its table? */
static bool has_gid(const json_t *device, const char *gid)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (json_object_get(device, "gids"), i, entry) {
        const char *text = json_string_value(json_object_get(entry, "gid"));

        if (text && strcmp(text, gid) == 0)
            return true;
    }
    return false;
}

/* Finds the peer of s->qp: the device with the destination GID, and the queue pair there. hosts is an array of {socket,
 * status, host?}. */
static void find_peer(const json_t *hosts, struct diagnose_input *s)
{
    const char *dgid = json_string_value(json_object_get(s->qp, "dgid"));
    json_int_t qpn = json_integer_value(json_object_get(s->qp, "dest_qpn"));
    const json_t *host, *device, *qp;
    size_t i, j, k;

    json_array_foreach (hosts, i, host) {
        json_array_foreach (json_object_get(json_object_get(host, "status"), "devices"), j, device) {
            if (!dgid || !has_gid(device, dgid))
                continue;
            s->peer_device = device;
            json_array_foreach (json_object_get(device, "qps"), k, qp) {
                if (json_integer_value(json_object_get(qp, "qpn")) == qpn)
                    s->peer = qp;
            }
        }
    }
}

static json_t *collect(const struct targets *t, bool *failed)
{
    json_t *hosts = json_array(), *status, *host;
    char path[SOCKET_PATH_MAX];

    for (unsigned i = 0; i < t->n; i++) {
        targets_socket(t, i, path);
        status = control_fetch(path, PM_OP_STATUS, NULL, 0);
        if (!status) {
            *failed = true;
            continue;
        }
        host = json_pack("{s:s, s:o}", "socket", path, "status", status);
        if (t->first >= 0)
            json_object_set_new(host, "host", json_integer(t->first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    return hosts;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static json_t *answer(const json_t *host, const struct diagnose_input *s)
{
    static const char *const copied[] = {"qpn", "type", "state", "session", "pid", "comm", "dest_qpn", "dgid"};
    json_t *o = json_object();

    if (json_object_get(host, "host"))
        json_object_set(o, "host", json_object_get(host, "host"));
    json_object_set(o, "device", json_object_get(s->device, "name"));
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        if (json_object_get(s->qp, copied[i]))
            json_object_set(o, copied[i], json_object_get(s->qp, copied[i]));
    }
    json_object_set_new(o, "why", diagnose_qp(s));
    return o;
}

static void print(const json_t *o)
{
    const char *comm = json_string_value(json_object_get(o, "comm")), *text;
    const json_t *host = json_object_get(o, "host"), *reason;
    size_t i;

    printf("QP 0x%06" PRIx64, (uint64_t)json_integer_value(json_object_get(o, "qpn")));
    if (host)
        printf(" on host %" JSON_INTEGER_FORMAT, json_integer_value(host));
    printf(" (%s", json_string_value(json_object_get(o, "type")));
    if (comm)
        printf(" of %s, pid %" JSON_INTEGER_FORMAT, comm, json_integer_value(json_object_get(o, "pid")));
    printf(") is in %s", json_string_value(json_object_get(o, "state")));
    if (json_integer_value(json_object_get(o, "dest_qpn")))
        printf(", connected to 0x%06" PRIx64 " at %s", (uint64_t)json_integer_value(json_object_get(o, "dest_qpn")),
               json_string_value(json_object_get(o, "dgid")));
    puts(".");
    json_array_foreach (json_object_get(o, "why"), i, reason) {
        text = json_string_value(json_object_get(reason, "text"));
        printf("  - %s\n", text ? text : "");
    }
}

/* The results for all chosen queue pairs on the chosen hosts. */
static json_t *answers(const struct why_options *o, const json_t *hosts, const json_t *all_hosts)
{
    const json_t *host, *device, *qp;
    json_t *list = json_array();
    size_t i, j, k;

    json_array_foreach (hosts, i, host) {
        const json_t *status = json_object_get(host, "status");

        json_array_foreach (json_object_get(status, "devices"), j, device) {
            json_array_foreach (json_object_get(device, "qps"), k, qp) {
                struct diagnose_input s = {.hosts = all_hosts, .status = status, .device = device, .qp = qp};

                if (!o->all && (!o->qpn || json_integer_value(json_object_get(qp, "qpn")) != (json_int_t)o->qpn))
                    continue;
                find_peer(all_hosts, &s);
                json_array_append_new(list, answer(host, &s));
            }
        }
    }
    return list;
}

/* Does a daemon hide the queue pairs of other users? */
static bool hides_others(const json_t *hosts)
{
    const json_t *host;
    size_t i;

    json_array_foreach (hosts, i, host) {
        const char *shows = json_string_value(json_object_get(json_object_get(host, "status"), "shows"));

        if (shows && strncmp(shows, "only", 4) == 0)
            return true;
    }
    return false;
}

static void say_none(const struct why_options *o, const json_t *hosts)
{
    const char *others = hides_others(hosts) ? " of yours; only root and the daemon's user see those of others" : "";

    if (o->connections)
        say("no connection of rdma_cm exists or has failed lately%s", others);
    else if (o->all)
        say("there is no queue pair%s", others);
    else
        say("there is no queue pair 0x%06x%s (pumice status lists queue pairs)", o->qpn, others);
}

/* Prints the answers about queue pairs and connections. Returns how many there are. */
static size_t print_all(const struct why_options *o, const json_t *qps, const json_t *connections)
{
    json_t *root, *one;
    size_t i;

    if (o->json) {
        root = json_pack("{s:O, s:O}", "qps", qps, "connections", connections);
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(root);
    } else {
        json_array_foreach (qps, i, one)
            print(one);
        why_cm_print(connections);
    }
    return json_array_size(qps) + json_array_size(connections);
}

int cmd_why(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "[QPN]", doc, target_options_child, NULL, NULL};
    struct why_options o = {.target = TARGET_OPTIONS_NONE};
    struct targets t, everywhere;
    json_t *hosts, *all_hosts;
    bool failed = false, alone = false;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (target_options_find(&o.target, &t) != 0)
        return 1;
    hosts = collect(&t, &failed);
    all_hosts = hosts;
    if (o.target.host >= 0 && targets_find(&everywhere, NULL, -1) == 0) /* the peer may be on another host */
        all_hosts = collect(&everywhere, &alone);
    json_t *qps = answers(&o, hosts, all_hosts);
    json_t *connections = o.all || o.connections ? why_cm_answers(hosts, all_hosts) : json_array();
    size_t n = print_all(&o, qps, connections);
    if (n == 0 && !failed && !o.json)
        say_none(&o, hosts);
    failed |= n == 0 && o.qpn;
    json_decref(qps);
    json_decref(connections);
    if (all_hosts != hosts)
        json_decref(all_hosts);
    json_decref(hosts);
    return failed;
}
