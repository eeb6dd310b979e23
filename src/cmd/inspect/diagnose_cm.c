// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/diagnose_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/common/json_member.h"
#include "wire/cm_msg.h"

/* --- text -------------------------------------------------------------------------------------- */

/* Appends to the text, as far as it has room. */
static void add(char text[CM_REASON_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[CM_REASON_MAX], const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + used, CM_REASON_MAX - used, fmt, ap);
    va_end(ap);
}

/* "once", "4 times" */
static const char *times(long long n, char out[32])
{
    if (n == 1)
        return "once";
    snprintf(out, 32, "%lld times", n);
    return out;
}

/* --- addresses --------------------------------------------------------------------------------- */

struct endpoint {
    char address[INET6_ADDRSTRLEN]; /* "": none */
    unsigned port;
};

/* Takes "10.0.0.1:7471" or "[fd00::1]:7471" apart. */
static struct endpoint endpoint_of(const json_t *row, const char *member)
{
    const char *text = member_text(row, member), *colon = strrchr(text, ':');
    struct endpoint e = {.port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0};
    size_t len = colon ? (size_t)(colon - text) : 0;

    if (len >= 2 && text[0] == '[') {
        text++;
        len -= 2;
    }
    if (len < sizeof(e.address))
        memcpy(e.address, text, len); /* the rest is 0 */
    return e;
}

static bool device_has(const json_t *device, const char *address)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (json_object_get(device, "gids"), i, entry) {
        if (member_is(entry, "address", address))
            return true;
    }
    return false;
}

/* The status of the daemon with this address. NULL: none of the daemons asked has it. */
static const json_t *daemon_at(const json_t *hosts, const char *address)
{
    const json_t *host, *device;
    size_t i, k;

    json_array_foreach (hosts, i, host) {
        const json_t *status = json_object_get(host, "status");

        json_array_foreach (json_object_get(status, "devices"), k, device) {
            if (device_has(device, address))
                return status;
        }
    }
    return NULL;
}

static bool is_wildcard(const char *address)
{
    return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

/* Adds where programs listen on the daemon with this address, as far as they may be seen. */
static void add_listeners(char text[CM_REASON_MAX], const json_t *hosts, const char *address)
{
    const json_t *status = daemon_at(hosts, address), *l;
    const json_t *list = json_object_get(json_object_get(status, "cm"), "listeners");
    unsigned n = 0;
    size_t i;

    json_array_foreach (list, i, l) {
        const char *at = member_text(l, "address"), *comm = member_text(l, "comm");

        if (!is_wildcard(at) && strcmp(at, address) != 0)
            continue;
        if (++n > 4)
            break;
        add(text, "%s port %lld (%s%s%s, pid %lld)", n == 1 ? " Listeners there:" : ",", member_whole(l, "port"),
            member_text(l, "space"), *comm ? ", " : "", comm, member_whole(l, "pid"));
    }
    if (n)
        add(text, "%s.", n > 4 ? ", …" : "");
    else if (status)
        add(text, " No program that you may see listens there.");
}

/* --- reasons ----------------------------------------------------------------------------------- */

static void add_silence(char text[CM_REASON_MAX], const json_t *row, const json_t *hosts, const struct endpoint *e)
{
    char n[32];

    add(text, "The REQ was sent to %s %s without an answer. ", member_text(row, "remote"),
        times(member_whole(row, "retries") + 1, n));
    if (daemon_at(hosts, e->address))
        add(text,
            "A daemon has this address, so packets get lost: `pumice ping %s` and the counters of both sides show "
            "where.",
            e->address);
    else
        add(text,
            "Is there a daemon or a RoCE NIC at %s (pumice ping %s)? It would refuse the connection if nobody "
            "listened.",
            e->address, e->address);
}

/* The meaning of a reject, and advice. */
static void add_reject(char text[CM_REASON_MAX], const json_t *row, const json_t *hosts, const struct endpoint *e)
{
    long long reason = member_whole(row, "reject");
    bool sent = member_true(row, "sent_reject");

    add(text, "%s sent a REJ, reason %lld (%s)", sent ? "This host" : e->address, reason,
        cm_reject_reason_text((uint16_t)reason));
    if (sent) {
        add(text, ".");
        return;
    }
    switch (reason) {
    case CM_REJ_INVALID_SERVICE_ID:
        add(text, ": nobody listens on port %u of %s (port space %s).", e->port, e->address, member_text(row, "space"));
        add_listeners(text, hosts, e->address);
        break;
    case CM_REJ_CONSUMER_DEFINED:
        add(text, ": the program at port %u called rdma_reject or ended, or the backlog of its listener was full.",
            e->port);
        break;
    case CM_REJ_TIMEOUT:
        add(text, ": it got no RTU for its REP. Packets get lost, or this program did not go on in time.");
        break;
    case CM_REJ_STALE_CONN:
        add(text, ": a connection with this queue pair number still exists there, or is in time wait. Try again.");
        break;
    case CM_REJ_NO_QP:
    case CM_REJ_NO_RESOURCES:
        add(text, ": the program or the daemon there has no room for another connection.");
        break;
    case CM_REJ_INVALID_GID:
    case CM_REJ_INVALID_ALT_GID:
        add(text, ": the addresses in the REQ are not those of its packet. Is there address translation between the "
                  "hosts?");
        break;
    case CM_REJ_INVALID_MTU:
        add(text, ": it cannot use the path MTU of this device. Set a smaller one (pumiced --mtu).");
        break;
    default:
        add(text, ".");
    }
}

/* --- IDs --------------------------------------------------------------------------------------- */

/* States in which the program must call a function. */
static const char *next_call(const char *state)
{
    static const char *const calls[][2] = {
        {"IDLE", "rdma_bind_addr or rdma_resolve_addr"},
        {"BOUND", "rdma_listen or rdma_resolve_addr"},
        {"ADDR_RESOLVED", "rdma_resolve_route"},
        {"ROUTE_RESOLVED", "rdma_connect"},
        {"REQ_RECEIVED", "rdma_accept or rdma_reject"},
        {"REP_RECEIVED", "rdma_accept or rdma_establish"},
        {"DREQ_RECEIVED", "rdma_disconnect"},
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i][0], state) == 0)
            return calls[i][1];
    }
    return NULL;
}

const char *diagnose_connection(const json_t *id, const json_t *hosts, char text[CM_REASON_MAX])
{
    const struct endpoint remote = endpoint_of(id, "remote");
    const char *state = member_text(id, "state"), *call = next_call(state);
    char n[32];

    text[0] = 0;
    if (call) {
        add(text, "It is in %s: it waits until its program calls %s.", state, call);
        return "program";
    }
    if (strcmp(state, "REQ_SENT") == 0) {
        add_silence(text, id, hosts, &remote);
        return "req";
    }
    if (strcmp(state, "REP_SENT") == 0) {
        add(text,
            "Its program accepted, and the REP was sent to %s %s without an RTU. The program there did not go on yet, "
            "or "
            "packets get lost.",
            member_text(id, "remote"), times(member_whole(id, "retries") + 1, n));
        return "rep";
    }
    if (strcmp(state, "DREQ_SENT") == 0) {
        add(text, "It ends: the DREQ was sent to %s %s, and the DREP did not come yet.", member_text(id, "remote"),
            times(member_whole(id, "retries") + 1, n));
        return "dreq";
    }
    if (strcmp(state, "ESTABLISHED") == 0) {
        add(text, "It is connected to %s.", member_text(id, "remote"));
        return "connected";
    }
    if (member_whole(id, "reject")) {
        add_reject(text, id, hosts, &remote);
        return "rejected";
    }
    add(text, "It is in %s: the connection is over.", state);
    return "over";
}

const char *diagnose_listener(const json_t *id, char text[CM_REASON_MAX])
{
    long long waiting = member_whole(id, "waiting"), backlog = member_whole(id, "backlog");

    text[0] = 0;
    if (waiting && waiting >= backlog) {
        add(text,
            "Its backlog is full: %lld requests wait until its program accepts or rejects them, and new ones are "
            "refused.",
            waiting);
        return "full";
    }
    if (waiting) {
        add(text, "%lld requests wait until its program accepts or rejects them.", waiting);
        return "program";
    }
    add(text, "It waits for requests.");
    return "ready";
}

/* --- failures ---------------------------------------------------------------------------------- */

static const char *explain_address(const json_t *f, const struct endpoint *e, char text[CM_REASON_MAX])
{
    int error = (int)-member_whole(f, "status");

    if (error == ENODEV || error == EADDRNOTAVAIL)
        add(text, "No device of the daemon has the local address %s (pumice status --only gids).",
            member_text(f, "local"));
    else if (error == ENETUNREACH || error == EHOSTUNREACH)
        add(text, "No device of the daemon reaches %s: %s. `ip route get %s` shows the route.", e->address,
            strerror(error), e->address);
    else
        add(text, "The address %s was not resolved: %s.", e->address, strerror(error));
    return "address";
}

static const char *explain_unreachable(const json_t *f, const json_t *hosts, const struct endpoint *e,
                                       char text[CM_REASON_MAX])
{
    char n[32];

    if (member_true(f, "answered"))
        add(text, "The REP was sent to %s %s without an RTU. The program there has ended, or packets get lost.",
            member_text(f, "remote"), times(member_whole(f, "retries") + 1, n));
    else if (member_is(f, "space", "UDP") || member_is(f, "space", "IPOIB"))
        add(text, "The program at %s did not answer, or refused the request (SIDR), status %lld.",
            member_text(f, "remote"), member_whole(f, "status"));
    else
        add_silence(text, f, hosts, e);
    return "unreachable";
}

const char *diagnose_failure(const json_t *failure, const json_t *hosts, char text[CM_REASON_MAX])
{
    const struct endpoint remote = endpoint_of(failure, "remote");
    const char *event = member_text(failure, "event");

    text[0] = 0;
    if (strcmp(event, "ADDR_ERROR") == 0)
        return explain_address(failure, &remote, text);
    if (strcmp(event, "UNREACHABLE") == 0)
        return explain_unreachable(failure, hosts, &remote, text);
    if (strcmp(event, "REJECTED") == 0) {
        add_reject(text, failure, hosts, &remote);
        return "rejected";
    }
    long long status = member_whole(failure, "status");
    add(text, "The program got %s: %s.", event, status < 0 ? strerror((int)-status) : "no reason was given");
    return "error";
}
