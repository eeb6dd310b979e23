// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/net/fault.h"

static int bad(char *why, const char *name, const char *value, const char *accepted)
{
    snprintf(why, ERROR_TEXT_MAX, "%s: \"%.80s\" is not right; it takes %s", name, value, accepted);
    return -EINVAL;
}

/* A whole number between lo and hi, decimal or 0x…; nothing may follow it. */
static bool parse_u64(const char *text, uint64_t lo, uint64_t hi, uint64_t *out)
{
    char *end;
    unsigned long long v;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    v = strtoull(text, &end, 0);
    if (errno || *end || v < lo || v > hi)
        return false;
    *out = v;
    return true;
}

/* Index of value in a NULL-terminated list, or -1. */
static int parse_choice(const char *value, const char *const *choices)
{
    for (int i = 0; choices[i]; i++) {
        if (strcmp(value, choices[i]) == 0)
            return i;
    }
    return -1;
}

/* --- one function per setting ---------------------------------------------------------------------------------------
 */

static int set_text(char *dst, size_t size, const char *name, const char *value, char *why)
{
    if (strlen(value) >= size) {
        snprintf(why, ERROR_TEXT_MAX, "%s: longer than %zu characters", name, size - 1);
        return -EINVAL;
    }
    strcpy(dst, value);
    return 0;
}

static int set_socket(struct settings *o, const char *name, const char *value, char *why)
{
    return set_text(o->socket, sizeof(o->socket), name, value, why);
}

static int set_group(struct settings *o, const char *name, const char *value, char *why)
{
    return set_text(o->group, sizeof(o->group), name, value, why);
}

static int set_device(struct settings *o, const char *name, const char *value, char *why)
{
    char dev[PM_NAME_MAX];
    const char *eq = strchr(value, '=');

    if (!eq || eq == value || (size_t)(eq - value) >= sizeof(dev))
        return bad(why, name, value, "NAME=ADDRESS, as pumice0=127.0.0.1");
    memcpy(dev, value, (size_t)(eq - value));
    dev[eq - value] = 0;
    return settings_add_device(o, dev, eq + 1, why);
}

static int set_address(struct settings *o, const char *name, const char *value, char *why)
{
    (void)name;
    return settings_add_device(o, NULL, value, why);
}

static int set_loopback(struct settings *o, const char *name, const char *value, char *why)
{
    static const char *const choices[] = {"engine", "wire", NULL};
    int i = parse_choice(value, choices);

    if (i < 0)
        return bad(why, name, value, "engine or wire");
    o->loopback_wire = i == 1;
    return 0;
}

static int set_gso(struct settings *o, const char *name, const char *value, char *why)
{
    static const char *const choices[] = {"auto", "on", "off", NULL};
    int i = parse_choice(value, choices);

    if (i < 0)
        return bad(why, name, value, "auto, on or off");
    o->gso = (enum gso_mode)i;
    return 0;
}

static int set_ecn(struct settings *o, const char *name, const char *value, char *why)
{
    static const char *const choices[] = {"off", "on", NULL};
    int i = parse_choice(value, choices);

    if (i < 0)
        return bad(why, name, value, "on or off");
    o->ecn = i == 1;
    return 0;
}

static int set_cnp_dscp(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 0, 63, &v))
        return bad(why, name, value, "a number from 0 to 63");
    o->cnp_dscp = (int)v;
    return 0;
}

static int set_tm_profile(struct settings *o, const char *name, const char *value, char *why)
{
    const struct tm_profile *p;

    for (unsigned i = 0; (p = tm_profile(i)) != NULL; i++) {
        if (strcmp(value, p->name) == 0) {
            o->tm_profile = i;
            return 0;
        }
    }
    return bad(why, name, value, "generous or mlx5");
}

static int set_memory(struct settings *o, const char *name, const char *value, char *why)
{
    static const char *const choices[] = {"auto", "process_vm", "proc_mem", NULL};
    int i = parse_choice(value, choices);

    if (i < 0)
        return bad(why, name, value, "auto, process_vm or proc_mem");
    o->memory = (enum memory_mode)i;
    return 0;
}

static int set_fault(struct settings *o, const char *name, const char *value, char *why)
{
    struct fault_spec spec;
    char text[FAULT_WHY_MAX];

    if (fault_parse(value, &spec, text, sizeof(text)) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "%s: %s", name, text);
        return -EINVAL;
    }
    return set_text(o->fault, sizeof(o->fault), name, value, why);
}

static int set_seed(struct settings *o, const char *name, const char *value, char *why)
{
    if (!parse_u64(value, 0, UINT64_MAX, &o->seed))
        return bad(why, name, value, "a whole number");
    o->has_seed = true;
    return 0;
}

static int set_mtu(struct settings *o, const char *name, const char *value, char *why)
{
    static const char *const choices[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};
    int i = parse_choice(value, choices);

    if (i < 0)
        return bad(why, name, value, "auto, 256, 512, 1024, 2048 or 4096");
    o->mtu = (uint8_t)i;
    return 0;
}

static int set_window(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 1, 1u << 22, &v))
        return bad(why, name, value, "a number of packets from 1 to 4194304");
    o->window_pkts = (uint32_t)v;
    return 0;
}

static int set_ack_delay(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    /* A quarter of the shortest timeout that a peer can have, so that a late ACK is no reason to send again. */
    if (!parse_u64(value, 0, 250, &v))
        return bad(why, name, value, "microseconds from 0 (off) to 250");
    o->ack_delay_us = (int64_t)v;
    return 0;
}

static int set_min_timeout(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 1000, 60000000, &v))
        return bad(why, name, value, "microseconds from 1000 to 60000000");
    o->min_timeout_us = (uint32_t)v;
    return 0;
}

static int set_path_check(struct settings *o, const char *name, const char *value, char *why)
{
    static const char *const choices[] = {"off", "warn", "enforce", NULL};
    int i = parse_choice(value, choices);

    if (i < 0)
        return bad(why, name, value, "off, warn or enforce");
    o->path_check = (enum path_check_mode)i;
    return 0;
}

static int set_path_check_tries(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 1, 10000, &v))
        return bad(why, name, value, "a number from 1 to 10000");
    o->path_check_tries = (uint32_t)v;
    return 0;
}

static int set_path_check_map(struct settings *o, const char *name, const char *value, char *why)
{
    return set_text(o->path_check_map, sizeof(o->path_check_map), name, value, why);
}

static int set_idle(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 0, 10000000, &v))
        return bad(why, name, value, "microseconds from 0 (sleep at once) to 10000000");
    o->idle_us = (uint32_t)v;
    return 0;
}

static int set_cpus(struct settings *o, const char *name, const char *value, char *why)
{
    char list[256], *rest = list, *item;
    uint64_t v;
    int rc = set_text(list, sizeof(list), name, value, why);

    o->cpus = 0;
    if (rc || strcmp(value, "any") == 0)
        return rc;
    while ((item = strsep(&rest, ",")) != NULL) {
        if (o->cpus == PM_DEVICES_MAX || !parse_u64(item, 0, CPU_SETSIZE - 1, &v)) {
            o->cpus = 0;
            return bad(why, name, value, "any, or numbers of processors, as 0,1 (one for each device)");
        }
        o->cpu[o->cpus++] = (uint16_t)v;
    }
    return 0;
}

static int set_rcvbuf(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 65536, 1u << 30, &v))
        return bad(why, name, value, "bytes from 65536 to 1073741824");
    o->rcvbuf = (uint32_t)v;
    return 0;
}

static int set_ready_fd(struct settings *o, const char *name, const char *value, char *why)
{
    uint64_t v;

    if (!parse_u64(value, 0, INT_MAX, &v))
        return bad(why, name, value, "the number of an open file descriptor");
    o->ready_fd = (int)v;
    return 0;
}

static int set_log_level(struct settings *o, const char *name, const char *value, char *why)
{
    if (log_levels_parse(value, &o->log_levels) != 0)
        return bad(why, name, value,
                   "error, warn, info or debug, also for single areas (daemon, net, session, qp, packet) as in "
                   "warn,qp=debug");
    return 0;
}

/* PORT or ADDRESS:PORT, IPv6 in brackets. Whoever can connect may read, so it must be an address of the loopback. */
static int set_metrics(struct settings *o, const char *name, const char *value, char *why)
{
    static const char takes[] =
        "a port, or ADDRESS:PORT with an address of the loopback, as 127.0.0.1:9400 or [::1]:9400";
    const char *colon = strrchr(value, ':');
    char host[64] = "127.0.0.1";
    uint64_t port;

    if (strcmp(value, "off") == 0) {
        memset(&o->metrics, 0, sizeof(o->metrics));
        return 0;
    }
    if (colon) {
        bool bracket = value[0] == '[' && colon > value && colon[-1] == ']';

        snprintf(host, sizeof(host), "%.*s", (int)(colon - value) - 2 * bracket, value + bracket);
    }
    if (!parse_u64(colon ? colon + 1 : value, 1, 65535, &port) || addr_parse(host, &o->metrics) != 0 ||
        !addr_is_loopback(&o->metrics)) {
        memset(&o->metrics, 0, sizeof(o->metrics));
        return bad(why, name, value, takes);
    }
    addr_set_port(&o->metrics, (uint16_t)port);
    return 0;
}

static int set_log_format(struct settings *o, const char *name, const char *value, char *why)
{
    if (strcmp(value, "text") != 0 && strcmp(value, "json") != 0)
        return bad(why, name, value, "text or json");
    o->log_json = value[0] == 'j';
    return 0;
}

static const struct {
    const char *name;
    int (*set)(struct settings *o, const char *name, const char *value, char *why);
} settings[] = {
    {"socket", set_socket},
    {"group", set_group},
    {"device", set_device},
    {"address", set_address},
    {"loopback", set_loopback},
    {"ecn", set_ecn},
    {"cnp-dscp", set_cnp_dscp},
    {"tm-profile", set_tm_profile},
    {"tm_profile", set_tm_profile}, /* as others spell it */
    {"gso", set_gso},
    {"memory", set_memory},
    {"fault", set_fault},
    {"seed", set_seed},
    {"mtu", set_mtu},
    {"window", set_window},
    {"ack-delay-us", set_ack_delay},
    {"min-timeout-us", set_min_timeout},
    {"connectivity", set_path_check},
    {"connectivity-tries", set_path_check_tries},
    {"connectivity-map", set_path_check_map},
    {"idle-us", set_idle},
    {"cpus", set_cpus},
    {"rcvbuf", set_rcvbuf},
    {"ready-fd", set_ready_fd},
    {"log-level", set_log_level},
    {"log-format", set_log_format},
    {"metrics", set_metrics},
};

int options_set(struct settings *o, const char *name, const char *value, char why[ERROR_TEXT_MAX])
{
    for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strcmp(name, settings[i].name) == 0)
            return settings[i].set(o, name, value, why);
    }
    snprintf(why, ERROR_TEXT_MAX, "%.80s: there is no such setting", name);
    return -EINVAL;
}
