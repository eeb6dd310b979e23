// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/cm_status.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json.h"
#include "daemon/core/cm/cm.h"
#include "wire/gid.h"

struct names {
    const char *const *name;
    unsigned n;
};

static void put(json_t *o, const char *name, json_t *value)
{
    json_object_set_new(o, name, value);
}

/* --- values ------------------------------------------------------------------------------------ */

static bool is_none(const struct cm_addr *a)
{
    static const uint8_t zero[16];

    return a->port == 0 && memcmp(a->gid, zero, sizeof(zero)) == 0;
}

static const char *address_text(const struct cm_addr *a, char out[INET6_ADDRSTRLEN])
{
    bool v4 = gid_is_v4(a->gid);

    return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->gid + GID_V4_AT : a->gid, out, INET6_ADDRSTRLEN);
}

static json_t *address_json(const struct cm_addr *a)
{
    char text[INET6_ADDRSTRLEN];

    return is_none(a) ? json_null() : json_string(address_text(a, text));
}

static json_t *port_json(const struct cm_addr *a)
{
    return is_none(a) ? json_null() : json_number(a->port);
}

/* Address and port: "10.0.0.1:7471", "[fd00::1]:7471". */
static json_t *endpoint_json(const struct cm_addr *a)
{
    char text[INET6_ADDRSTRLEN], out[INET6_ADDRSTRLEN + 8];

    if (is_none(a))
        return json_null();
    snprintf(out, sizeof(out), gid_is_v4(a->gid) ? "%s:%u" : "[%s]:%u", address_text(a, text), a->port);
    return json_string(out);
}

static json_t *device_json(const struct cm_route *route, const struct names *names)
{
    return route->device < names->n ? json_string(names->name[route->device]) : json_null();
}

/* As the rdma tool of iproute2 names them. The numbers are those of enum rdma_port_space. */
static const char *space_name(uint16_t port_space)
{
    switch (port_space) {
    case 0x0002:
        return "IPOIB";
    case 0x0106:
        return "TCP";
    case 0x0111:
        return "UDP";
    case 0x013f:
        return "IB";
    default:
        return "?";
    }
}

static const char *type_name(uint8_t qp_type)
{
    switch (qp_type) {
    case QPT_RC:
        return "RC";
    case QPT_UC:
        return "UC";
    case QPT_UD:
        return "UD";
    case QPT_XRC_SEND:
        return "XRC_SEND";
    case QPT_XRC_RECV:
        return "XRC_RECV";
    default:
        return "?";
    }
}

/* Names for programs that read the document. cm_id_state_name has words for people. */
static const char *state_name(enum cm_id_state state)
{
    static const char *const names[] = {
        [CM_ID_IDLE] = "IDLE",
        [CM_ID_BOUND] = "BOUND",
        [CM_ID_LISTEN] = "LISTEN",
        [CM_ID_ADDR_RESOLVED] = "ADDR_RESOLVED",
        [CM_ID_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
        [CM_ID_REQ_SENT] = "REQ_SENT",
        [CM_ID_REQ_RECEIVED] = "REQ_RECEIVED",
        [CM_ID_REP_SENT] = "REP_SENT",
        [CM_ID_REP_RECEIVED] = "REP_RECEIVED",
        [CM_ID_ESTABLISHED] = "ESTABLISHED",
        [CM_ID_DREQ_SENT] = "DREQ_SENT",
        [CM_ID_DREQ_RECEIVED] = "DREQ_RECEIVED",
        [CM_ID_TIME_WAIT] = "TIME_WAIT",
        [CM_ID_DISCONNECTED] = "DISCONNECTED",
    };

    return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

static const char *event_name(uint8_t event)
{
    switch (event) {
    case CM_EVENT_ADDR_ERROR:
        return "ADDR_ERROR";
    case CM_EVENT_ROUTE_ERROR:
        return "ROUTE_ERROR";
    case CM_EVENT_CONNECT_ERROR:
        return "CONNECT_ERROR";
    case CM_EVENT_UNREACHABLE:
        return "UNREACHABLE";
    case CM_EVENT_REJECTED:
        return "REJECTED";
    case CM_EVENT_MULTICAST_ERROR:
        return "MULTICAST_ERROR";
    default:
        return "?";
    }
}

/* --- rows -------------------------------------------------------------------------------------- */

static void put_reject(json_t *o, const struct cm_id_info *i)
{
    put(o, "reject", i->last_reject ? json_number(i->last_reject) : json_null());
    put(o, "reject_text", i->last_reject ? json_string(cm_reject_reason_text(i->last_reject)) : json_null());
    put(o, "sent_reject", json_boolean(i->last_reject && i->sent_reject));
}

static json_t *row_of(const struct cm_snapshot_id *id)
{
    json_t *o = json_object();

    put(o, "id", json_number(id->number));
    put(o, "pid", json_integer(id->pid));
    put(o, "uid", json_number(id->uid));
    put(o, "space", json_string(space_name(id->info.port_space)));
    return o;
}

static json_t *listener_json(const struct cm_snapshot_id *id, const struct names *names)
{
    json_t *o = row_of(id);

    put(o, "address", address_json(&id->info.src));
    put(o, "port", port_json(&id->info.src));
    put(o, "device", device_json(&id->info.route, names));
    put(o, "backlog", json_number(id->info.backlog));
    put(o, "waiting", json_number(id->requests));
    return o;
}

static json_t *connection_json(const struct cm_snapshot_id *id, const struct names *names)
{
    const struct cm_id_info *i = &id->info;
    json_t *o = row_of(id);

    put(o, "type", json_string(type_name(i->qp_type)));
    put(o, "state", json_string(state_name(i->state)));
    put(o, "device", device_json(&i->route, names));
    put(o, "local", endpoint_json(&i->src));
    put(o, "remote", endpoint_json(&i->dst));
    put(o, "qpn", i->local_qpn ? json_number(i->local_qpn) : json_null());
    put(o, "dest_qpn", i->remote_qpn ? json_number(i->remote_qpn) : json_null());
    put(o, "retries", json_number(i->retries));
    put(o, "groups", json_number(id->groups));
    put(o, "comm_id", json_hex(i->local_comm_id));
    put(o, "remote_comm_id", json_hex(i->remote_comm_id));
    put_reject(o, i);
    return o;
}

static json_t *failure_json(const struct cm_failure *f, uint64_t taken, const struct names *names)
{
    json_t *o = json_object();

    put(o, "ago_s", json_real(taken > f->at ? (double)((taken - f->at) / NS_PER_MS) / 1e3 : 0.0));
    put(o, "event", json_string(event_name(f->event)));
    put(o, "status", json_integer(f->status));
    put(o, "pid", json_integer(f->pid));
    put(o, "uid", json_number(f->uid));
    put(o, "space", json_string(space_name(f->id.port_space)));
    put(o, "device", device_json(&f->id.route, names));
    put(o, "local", endpoint_json(&f->id.src));
    put(o, "remote", endpoint_json(&f->id.dst));
    put(o, "qpn", f->id.local_qpn ? json_number(f->id.local_qpn) : json_null());
    put(o, "retries", json_number(f->id.retries));
    put(o, "answered", json_boolean(f->id.remote_comm_id != 0)); /* the peer has sent a REQ or REP */
    put_reject(o, &f->id);
    return o;
}

/* --- the document ------------------------------------------------------------------------------ */

static json_t *counters_json(const struct cm_counters *c)
{
    json_t *o = json_object();

#define X(name, text) put(o, #name, json_number(c->name));
    CM_COUNTERS(X)
#undef X
    return o;
}

static void count_state(json_t *states, enum cm_id_state state)
{
    const char *name = state_name(state);
    json_int_t n = json_integer_value(json_object_get(states, name));

    put(states, name, json_integer(n + 1));
}

json_t *cm_status_json(const struct cm_snapshot *s, const char *const *names, unsigned num_names)
{
    static const struct cm_snapshot silent;
    const struct names devices = {names, num_names};
    json_t *o = json_object(), *states = json_object();
    json_t *listeners = json_array(), *connections = json_array(), *failures = json_array();

    put(o, "answers", json_boolean(s != NULL));
    if (!s)
        s = &silent;
    for (size_t i = 0; i < s->num_ids; i++) {
        count_state(states, s->id[i].info.state);
        if (s->id[i].info.state == CM_ID_LISTEN)
            json_array_append_new(listeners, listener_json(&s->id[i], &devices));
        else
            json_array_append_new(connections, connection_json(&s->id[i], &devices));
    }
    for (unsigned i = 0; i < s->num_failures; i++)
        json_array_append_new(failures, failure_json(&s->failure[i], s->taken, &devices));
    put(o, "channels", json_number(s->num_channels));
    put(o, "ids", json_number(s->num_ids));
    put(o, "states", states);
    put(o, "counters", counters_json(&s->counters));
    put(o, "listeners", listeners);
    put(o, "connections", connections);
    put(o, "failures", failures);
    return o;
}

/* --- programs ---------------------------------------------------------------------------------- */

/* { process number as text: name } */
static json_t *programs_of(const json_t *devices)
{
    json_t *programs = json_object(), *device, *s;
    char pid[24];
    size_t i, k;

    json_array_foreach (devices, i, device) {
        json_array_foreach (json_object_get(device, "sessions"), k, s) {
            snprintf(pid, sizeof(pid), "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(s, "pid")));
            json_object_set(programs, pid, json_object_get(s, "comm"));
        }
    }
    return programs;
}

void cm_status_add_programs(json_t *cm, const json_t *devices)
{
    static const char *const lists[] = {"listeners", "connections", "failures"};
    json_t *programs = programs_of(devices), *row;
    char pid[24];
    size_t i;

    for (unsigned n = 0; n < sizeof(lists) / sizeof(lists[0]); n++) {
        json_array_foreach (json_object_get(cm, lists[n]), i, row) {
            snprintf(pid, sizeof(pid), "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(row, "pid")));
            json_t *comm = json_object_get(programs, pid);
            if (comm)
                json_object_set(row, "comm", comm);
            else
                put(row, "comm", json_null());
        }
    }
    json_decref(programs);
}
