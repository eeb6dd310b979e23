// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/counter_names.h"

#include <string.h>

#define PORT_DIR "counters"
#define HW_DIR "hw_counters"
/* All lists except InfiniBand's. They share one folder of sysfs, so their names differ. */
#define HW_COUNTERS(X)                                                                                                 \
    RXE_COUNTERS(X)                                                                                                    \
    MLX5_COUNTERS(X)                                                                                                   \
    USNIC_COUNTERS(X)

static void set(json_t *o, const char *name, uint64_t v, bool all)
{
    if (v || all)
        json_object_set_new(o, name, json_integer((json_int_t)v));
}

/* Functions that make a JSON object from one list. */
#define X(name, value, text) set(o, #name, value, all);
#define OBJECT(function, COUNTERS)                                                                                     \
    static json_t *function(const struct engine_counters *e, const struct io_counters *io, bool all)                   \
    {                                                                                                                  \
        json_t *o = json_object();                                                                                     \
        (void)e;                                                                                                       \
        (void)io;                                                                                                      \
        COUNTERS(X)                                                                                                    \
        return o;                                                                                                      \
    }
OBJECT(rxe, RXE_COUNTERS)
OBJECT(mlx5, MLX5_COUNTERS)
OBJECT(usnic, USNIC_COUNTERS)
OBJECT(port, PORT_COUNTERS)
OBJECT(classes, TX_CLASSES)
#undef X

/* all: also counters that are 0. */
void counter_add_engine(json_t *o, const struct engine_counters *c, bool all)
{
#define X(name, text) set(o, #name, c->name, all);
    ENGINE_COUNTERS(X)
#undef X
}

void counter_name_add(json_t *o, const struct engine_counters *e, const struct io_counters *io, bool all)
{
    static const struct io_counters none;

    json_object_set_new(o, "hw_counters", rxe(e, io ? io : &none, all));
    json_object_set_new(o, "mlx5_counters", mlx5(e, io ? io : &none, all));
    json_object_set_new(o, "usnic_counters", usnic(e, io ? io : &none, all));
    if (io)
        json_object_set_new(o, "port_counters", port(e, io, true));
    if (io)
        json_object_set_new(o, "tx_classes", classes(e, io, true));
}

void counter_name_files(void (*fn)(void *ctx, const char *dir, const char *name), void *ctx)
{
#define X(name, value, text) fn(ctx, PORT_DIR, #name);
    PORT_COUNTERS(X)
#undef X
#define X(name, value, text) fn(ctx, HW_DIR, #name);
    HW_COUNTERS(X)
#undef X
}

bool counter_name_value(const char *file, const struct engine_counters *e, const struct io_counters *io,
                        uint64_t *value)
{
#define X(name, v, text)                                                                                               \
    if (strcmp(file, PORT_DIR "/" #name) == 0)                                                                         \
        return *value = (v), true;
    PORT_COUNTERS(X)
#undef X
#define X(name, v, text)                                                                                               \
    if (strcmp(file, HW_DIR "/" #name) == 0)                                                                           \
        return *value = (v), true;
    HW_COUNTERS(X)
#undef X
    return false;
}
