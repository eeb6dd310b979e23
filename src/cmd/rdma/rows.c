// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/rdma/rows.h"

#include <inttypes.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/version.h"
#include "src/cmd/common/json_member.h"

/* --- fields ------------------------------------------------------------------------------------ */

static void put(json_t *row, const char *name, json_t *value)
{
    json_object_set_new(row, name, value);
}

static void put_text(json_t *row, const char *name, const char *text)
{
    put(row, name, json_string(text));
}

static void put_hex(json_t *row, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, value);
    put_text(row, name, text);
}

/* Copies a member of the object, unless it is missing or null. */
static void copy(json_t *row, const char *name, const json_t *object, const char *member)
{
    json_t *value = json_object_get(object, member);

    if (value && !json_is_null(value))
        json_object_set(row, name, value);
}

/* The session that the object belongs to. NULL: none, or it has ended meanwhile. */
static const json_t *session_of(const json_t *device, const json_t *object)
{
    const json_t *number = json_object_get(object, "session"), *s;
    size_t i;

    json_array_foreach (json_object_get(device, "sessions"), i, s) {
        if (json_equal(json_object_get(s, "session"), number))
            return s;
    }
    return NULL;
}

static void put_process(json_t *row, const json_t *device, const json_t *object)
{
    const json_t *s = session_of(device, object);

    copy(row, "pid", s, "pid");
    copy(row, "comm", s, "comm");
}

static void put_context(json_t *row, const json_t *object)
{
    copy(row, "ctxn", object, "session");
}

/* --- kinds of objects -------------------------------------------------------------------------- */

/* The names of the rdma tool. */
static const char *qp_type(const char *type)
{
    if (strcmp(type, "XRC_SEND") == 0)
        return "XRC_INI";
    return strcmp(type, "XRC_RECV") == 0 ? "XRC_TGT" : type;
}

static void fill_qp(json_t *row, const json_t *device, const json_t *q)
{
    bool datagrams = member_is(q, "type", "UD");

    copy(row, "lqpn", q, "qpn");
    copy(row, "pdn", q, "pd");
    if (!datagrams)
        copy(row, "rqpn", q, "dest_qpn");
    put_text(row, "type", qp_type(member_text(q, "type")));
    copy(row, "state", q, "state");
    if (!datagrams)
        copy(row, "rq-psn", q, "epsn");
    copy(row, "sq-psn", q, "next_psn");
    if (!datagrams)
        put_text(row, "path-mig-state", "MIGRATED");
    put_process(row, device, q);
    put_context(row, q);
}

static void fill_cq(json_t *row, const json_t *device, const json_t *cq)
{
    copy(row, "cqe", cq, "entries");
    copy(row, "users", cq, "users");
    put_process(row, device, cq);
    copy(row, "cqn", cq, "cq");
    put_context(row, cq);
}

static void fill_mr(json_t *row, const json_t *device, const json_t *mr)
{
    uint64_t key = (uint64_t)member_whole(mr, "key");

    put_hex(row, "rkey", key);
    put_hex(row, "lkey", key);
    copy(row, "iova", mr, "va");
    copy(row, "mrlen", mr, "length");
    put_process(row, device, mr);
    put(row, "mrn", json_integer((json_int_t)(key >> 8)));
    copy(row, "pdn", mr, "pd");
    put_context(row, mr);
}

static void fill_pd(json_t *row, const json_t *device, const json_t *pd)
{
    copy(row, "users", pd, "users");
    put_process(row, device, pd);
    put_context(row, pd);
    copy(row, "pdn", pd, "pd");
}

/* The numbers of the QPs that use an SRQ. XRC targets choose an SRQ for each message, so they are not among them. */
static json_t *qps_of_srq(const json_t *device, const json_t *srq)
{
    json_t *list = json_array(), *q;
    size_t i;

    json_array_foreach (json_object_get(device, "qps"), i, q) {
        if (json_equal(json_object_get(q, "srq"), json_object_get(srq, "srq")) &&
            json_equal(json_object_get(q, "session"), json_object_get(srq, "session")))
            json_array_append(list, json_object_get(q, "qpn"));
    }
    return list;
}

static void fill_srq(json_t *row, const json_t *device, const json_t *srq)
{
    json_t *qps = qps_of_srq(device, srq);

    copy(row, "srqn", srq, "srq");
    put_text(row, "type", member_is(srq, "type", "basic") ? "BASIC" : member_text(srq, "type"));
    if (json_array_size(qps))
        json_object_set(row, "lqpn", qps);
    json_decref(qps);
    copy(row, "pdn", srq, "pd");
    copy(row, "cqn", srq, "cq");
    put_process(row, device, srq);
    put_context(row, srq);
}

static void fill_ctx(json_t *row, const json_t *device, const json_t *session)
{
    put_context(row, session);
    put_process(row, device, session);
}

static void fill_mw(json_t *row, const json_t *device, const json_t *mw)
{
    put_hex(row, "rkey", (uint64_t)member_whole(mw, "key"));
    copy(row, "type", mw, "type");
    copy(row, "max_entries", mw, "max_entries");
    put_process(row, device, mw);
    copy(row, "pdn", mw, "pd");
    put_context(row, mw);
}

static void fill_xrcd(json_t *row, const json_t *device, const json_t *x)
{
    (void)device;
    copy(row, "xrcdn", x, "xrcd");
    copy(row, "users", x, "opens");
    copy(row, "srqs", x, "srqs");
    copy(row, "qps", x, "targets");
    copy(row, "inode", x, "inode");
}

static void fill_tm(json_t *row, const json_t *device, const json_t *srq)
{
    const json_t *tm = json_object_get(srq, "tm");

    copy(row, "srqn", srq, "srq");
    copy(row, "active", tm, "active");
    copy(row, "pending", tm, "pending");
    copy(row, "consumed", tm, "consumed");
    copy(row, "max_num_tags", tm, "max_num_tags");
    copy(row, "hw_cnt", tm, "hw_cnt");
    copy(row, "sw_cnt", tm, "sw_cnt");
    copy(row, "in_sync", tm, "in_sync");
    copy(row, "cqn", srq, "cq");
    put_process(row, device, srq);
    put_context(row, srq);
}

/* The states of the rdma tool, which knows fewer. */
static const char *cm_id_state(const char *state)
{
    static const char *const names[][2] = {
        {"IDLE", "IDLE"},
        {"BOUND", "ADDR_BOUND"},
        {"LISTEN", "LISTEN"},
        {"ADDR_RESOLVED", "ADDR_RESOLVED"},
        {"ROUTE_RESOLVED", "ROUTE_RESOLVED"},
        {"DREQ_SENT", "DISCONNECT"},
        {"DREQ_RECEIVED", "DISCONNECT"},
        {"TIME_WAIT", "DISCONNECT"},
        {"DISCONNECTED", "DISCONNECT"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i][0], state) == 0)
            return names[i][1];
    }
    return "CONNECT";
}

/* A listener has its address and port in two members. */
static void put_listener(json_t *row, const json_t *id)
{
    const char *address = member_text(id, "address");
    char text[64];

    snprintf(text, sizeof(text), strchr(address, ':') ? "[%s]:%lld" : "%s:%lld", address, member_whole(id, "port"));
    put_text(row, "src-addr", text);
}

static void fill_cm_id(json_t *row, const json_t *device, const json_t *id)
{
    bool listens = json_object_get(id, "backlog") != NULL;

    (void)device;
    copy(row, "cm-idn", id, "id");
    copy(row, "lqpn", id, "qpn");
    if (json_object_get(row, "lqpn"))
        copy(row, "type", id, "type");
    put_text(row, "state", listens ? "LISTEN" : cm_id_state(member_text(id, "state")));
    copy(row, "ps", id, "space");
    copy(row, "pid", id, "pid");
    copy(row, "comm", id, "comm");
    if (listens)
        put_listener(row, id);
    copy(row, "src-addr", id, "local");
    copy(row, "dst-addr", id, "remote");
}

json_t *rows_cm_ids(const json_t *status, const char *name)
{
    static const char *const lists[] = {"listeners", "connections"};
    json_t *ids = json_array(), *id;
    size_t k;

    for (unsigned i = 0; i < 2; i++) {
        json_array_foreach (json_object_get(json_object_get(status, "cm"), lists[i]), k, id) {
            const char *device = member_text(id, "device");
            if (!*device || strcmp(device, name) == 0)
                json_array_append(ids, id);
        }
    }
    return ids;
}

/* clang-format off */
const struct row_kind row_kinds[] = {
    {"qp",   true,  "lqpn pdn rqpn type state rq-psn sq-psn path-mig-state pid comm ctxn ", fill_qp, "qps"},
    {"cq",   false, "cqe users pid comm cqn ctxn ", fill_cq, "cqs"},
    {"mr",   false, "rkey lkey iova mrlen pid comm mrn pdn ctxn ", fill_mr, "mrs"},
    {"pd",   false, "users pid comm ctxn pdn ", fill_pd, "pds"},
    {"srq",  false, "srqn type lqpn pdn cqn pid comm ctxn ", fill_srq, "srqs"},
    {"cm_id", true, "cm-idn lqpn type state ps pid comm src-addr dst-addr ", fill_cm_id, "cm_ids"},
    {"ctx",  false, "ctxn pid comm ", fill_ctx, "sessions"},
    {"mw",   false, "rkey type max_entries pid comm pdn ctxn ", fill_mw, "mws"},
    {"xrcd", false, "xrcdn users srqs qps inode ", fill_xrcd, "xrcds"},
    {"tm",   false, "srqn active pending consumed max_num_tags hw_cnt sw_cnt in_sync cqn pid comm ctxn ", fill_tm, "srqs"},
    {NULL, false, NULL, NULL, NULL},
};
/* clang-format on */

const struct row_kind *row_kind_find(const char *name)
{
    for (const struct row_kind *k = row_kinds; k->name; k++) {
        if (strcmp(k->name, name) == 0)
            return k;
    }
    return NULL;
}

/* --- rows -------------------------------------------------------------------------------------- */

static json_t *begin(const json_t *device, unsigned index, bool has_port)
{
    json_t *row = json_pack("{s:i}", "ifindex", (int)index);

    copy(row, "ifname", device, "name");
    if (has_port)
        put(row, "port", json_integer(1));
    return row;
}

/* The GUID as four groups of four digits. */
static void put_guid(json_t *row, const char *name, const json_t *device)
{
    uint64_t guid = strtoull(member_text(device, "guid"), NULL, 0);
    char text[24];

    snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
             (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
    put_text(row, name, text);
}

json_t *row_dev(const json_t *device, unsigned index, bool details)
{
    json_t *row = begin(device, index, false);

    put_text(row, "node_type", "ca");
    put_text(row, "protocol", "roce");
    put_text(row, "fw", PUMICE_VERSION);
    put_guid(row, "node_guid", device);
    put_guid(row, "sys_image_guid", device);
    if (details)
        put_text(row, "adaptive-moderation", "off");
    return row;
}

json_t *row_link(const json_t *device, unsigned index, bool details)
{
    json_t *row = begin(device, index, true);
    const char *netdev = member_text(device, "netdev");
    bool active = member_is(device, "port", "active");

    put_text(row, "state", active ? "ACTIVE" : "DOWN");
    put_text(row, "physical_state", active ? "LINK_UP" : "DISABLED");
    put_text(row, "netdev", netdev);
    if (details)
        put(row, "netdev_index", json_integer((json_int_t)if_nametoindex(netdev)));
    return row;
}

json_t *row_summary(const json_t *device, unsigned index)
{
    json_t *row = begin(device, index, false);

    for (const struct row_kind *k = row_kinds; k->name; k++) {
        if (strcmp(k->name, "tm") != 0)
            put(row, k->name, json_integer((json_int_t)json_array_size(json_object_get(device, k->list))));
    }
    return row;
}

json_t *row_object(const struct row_kind *kind, const json_t *device, unsigned index, const json_t *object)
{
    if (strcmp(kind->name, "tm") == 0 && !json_is_object(json_object_get(object, "tm")))
        return NULL;
    json_t *row = begin(device, index, kind->has_port);
    kind->fill(row, device, object);
    return row;
}
