// SPDX-License-Identifier: BSD-2-Clause
#include "foreign.h"

#include <stdint.h>

static void set(json_t *o, const char *name, uint64_t v, bool all)
{
    if (v || all)
        json_object_set_new(o, name, json_integer((json_int_t)v));
}

static json_t *rxe(const struct engine_counters *e, const struct io_counters *io, bool all)
{
    json_t *o = json_object();

#define X(name, value, text) set(o, #name, value, all);
    RXE_COUNTERS(X)
#undef X
    return o;
}

static json_t *usnic(const struct engine_counters *e, const struct io_counters *io, bool all)
{
    json_t *o = json_object();

#define X(name, value, text) set(o, #name, value, all);
    USNIC_COUNTERS(X)
#undef X
    return o;
}

static json_t *port(const struct io_counters *io)
{
    json_t *o = json_object();

#define X(name, value, text) set(o, #name, value, true);
    PORT_COUNTERS(X)
#undef X
    return o;
}

void foreign_add(json_t *o, const struct engine_counters *e, const struct io_counters *io, bool all)
{
    static const struct io_counters none;

    json_object_set_new(o, "hw_counters", rxe(e, io ? io : &none, all));
    json_object_set_new(o, "usnic_counters", usnic(e, io ? io : &none, all));
    if (io)
        json_object_set_new(o, "port_counters", port(io));
}
