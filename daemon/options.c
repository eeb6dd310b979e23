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

#include "daemon/base/unkind.h"
#include "daemon/device/memory_strikes.h"
#include "daemon/fault/fault.h"

/* --- kinds of values ------------------------------------------------------------------------------------------- */

/* Parses a whole number from lo to hi, decimal or 0x…; nothing may follow it. */
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

/* Stores a number in the member of the option, which has 1, 2, 4 or 8 bytes. */
static void store(const struct option_def *o, struct settings *s, uint64_t value)
{
    void *member = (char *)s + o->offset;

    switch (o->size) {
    case sizeof(uint8_t):
        *(uint8_t *)member = (uint8_t)value;
        break;
    case sizeof(uint16_t):
        *(uint16_t *)member = (uint16_t)value;
        break;
    case sizeof(uint32_t):
        *(uint32_t *)member = (uint32_t)value;
        break;
    default:
        *(uint64_t *)member = value;
    }
}

static int copy_text(const struct option_def *o, char *to, size_t size, const char *value, char *why)
{
    char expected[64];

    if (strlen(value) >= size) {
        snprintf(expected, sizeof(expected), "at most %zu characters", size - 1);
        return error_invalid_value(why, o->name, value, expected);
    }
    strcpy(to, value);
    return 0;
}

static int set_text(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    return copy_text(o, (char *)s + o->offset, o->size, value, why);
}

static int set_number(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    char expected[128];
    uint64_t v;

    if (!parse_u64(value, o->min, o->max, &v)) {
        snprintf(expected, sizeof(expected), "%s from %" PRIu64 "%s%s%s to %" PRIu64, o->unit, o->min,
                 o->zero ? " (" : "", o->zero ? o->zero : "", o->zero ? ")" : "", o->max);
        return error_invalid_value(why, o->name, value, expected);
    }
    store(o, s, v);
    return 0;
}

/* Turns "a|b|c" into "a, b or c". */
static void list_choices(const char *choices, char *text, size_t size)
{
    size_t len = 0;

    for (const char *p = choices; *p && len + 5 < size; p++) {
        if (*p != '|')
            text[len++] = *p;
        else
            len += (size_t)snprintf(text + len, size - len, "%s", strchr(p + 1, '|') ? ", " : " or ");
    }
    text[len] = 0;
}

/* Stores the position of the value in the list of choices. */
static int set_choice(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    char expected[192];
    size_t len = strlen(value);
    unsigned index = 0;

    for (const char *p = o->argument;; p++, index++) {
        size_t n = strcspn(p, "|");

        if (n == len && memcmp(p, value, n) == 0) {
            store(o, s, index);
            return 0;
        }
        p += n;
        if (!*p)
            break;
    }
    list_choices(o->argument, expected, sizeof(expected));
    return error_invalid_value(why, o->name, value, expected);
}

static int set_switch(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        return error_invalid_value(why, o->name, value, "on or off");
    store(o, s, strcmp(value, "on") == 0);
    return 0;
}

/* --- setters of single options --------------------------------------------------------------------------------- */

static int set_device(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    char name[PM_NAME_MAX];
    const char *eq = strchr(value, '=');

    if (!eq || eq == value || (size_t)(eq - value) >= sizeof(name))
        return error_invalid_value(why, o->name, value, "NAME=ADDRESS, such as pumice0=127.0.0.1");
    memcpy(name, value, (size_t)(eq - value));
    name[eq - value] = 0;
    return settings_add_device(s, name, eq + 1, why);
}

static int set_address(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    (void)o;
    return settings_add_device(s, NULL, value, why);
}

static int set_fault(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    struct fault_spec spec;
    char text[FAULT_WHY_MAX];

    if (fault_parse(value, &spec, text, sizeof(text)) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "%s: %s", o->name, text);
        return -EINVAL;
    }
    return set_text(o, s, value, why);
}

static int set_unkind(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    char expected[2 * UNKIND_TEXT_MAX];

    if (unkind_parse(value, &s->unkind) == 0)
        return 0;
    unkind_expected(expected, sizeof(expected));
    return error_invalid_value(why, o->name, value, expected);
}

static int set_seed(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    if (!parse_u64(value, 0, UINT64_MAX, &s->seed))
        return error_invalid_value(why, o->name, value, "a whole number from 0 to 18446744073709551615");
    s->has_seed = true;
    return 0;
}

static int set_cpus(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    char list[256], *rest = list, *item;
    uint64_t v;
    int rc = copy_text(o, list, sizeof(list), value, why);

    s->cpus = 0;
    if (rc || strcmp(value, "any") == 0)
        return rc;
    while ((item = strsep(&rest, ",")) != NULL) {
        if (s->cpus == PM_DEVICES_MAX || !parse_u64(item, 0, CPU_SETSIZE - 1, &v)) {
            s->cpus = 0;
            return error_invalid_value(why, o->name, value,
                                       "any, or numbers of processors, such as 0,1 (one for each device)");
        }
        s->cpu[s->cpus++] = (uint16_t)v;
    }
    return 0;
}

static int set_quota(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    struct quota_limits limits;

    if (quota_limits_parse(value, &limits) != 0)
        return error_invalid_value(why, o->name, value,
                                   "KIND=LIMIT[,KIND=LIMIT...], such as qps=1000,bytes=2G,mrs=none; kinds: all, "
                                   "sessions, connections, pds, qps, cqs, srqs, mrs, mws, channels, xrcds, groups, "
                                   "mappings, descriptors, bytes; limits: a number (K, M, G), auto or none");
    s->quota = limits;
    return 0;
}

static int set_log_level(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    struct log_levels levels;

    if (log_levels_parse(value, &levels) != 0)
        return error_invalid_value(why, o->name, value,
                                   "error, warn, info or debug, also for single areas (daemon, net, session, qp, "
                                   "packet), such as warn,qp=debug");
    s->log_levels = levels;
    return 0;
}

/* PORT or ADDRESS:PORT, IPv6 in brackets. Only loopback addresses are allowed, because every process that can connect
 * can read the counters. */
static int set_metrics(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    const char *colon = strrchr(value, ':');
    char host[64] = "127.0.0.1";
    uint64_t port;

    memset(&s->metrics, 0, sizeof(s->metrics));
    if (strcmp(value, "off") == 0)
        return 0;
    if (colon) {
        bool bracket = value[0] == '[' && colon > value && colon[-1] == ']';

        snprintf(host, sizeof(host), "%.*s", (int)(colon - value) - 2 * bracket, value + bracket);
    }
    if (!parse_u64(colon ? colon + 1 : value, 1, 65535, &port) || addr_parse(host, &s->metrics) != 0 ||
        !addr_is_loopback(&s->metrics)) {
        memset(&s->metrics, 0, sizeof(s->metrics));
        return error_invalid_value(why, o->name, value,
                                   "off, a port, or ADDRESS:PORT with a loopback address, such as 127.0.0.1:9400 or "
                                   "[::1]:9400");
    }
    addr_set_port(&s->metrics, (uint16_t)port);
    return 0;
}

static int set_peers(const struct option_def *o, struct settings *s, const char *value, char *why)
{
    struct peer_list peers;

    if (peer_list_parse(value, &peers) != 0)
        return error_invalid_value(why, o->name, value,
                                   "any, or up to 64 prefixes of addresses, such as 10.0.0.0/8,fd00::/8");
    s->peers = peers;
    return 0;
}

/* --- the table ------------------------------------------------------------------------------------------------- */

#define END_OF(member) (offsetof(struct settings, member) + sizeof(((struct settings *)0)->member))
/* The members from `first` to `last`, which must be adjacent. */
#define MEMBERS(first, last) offsetof(struct settings, first), END_OF(last) - offsetof(struct settings, first)
#define MEMBER(member) MEMBERS(member, member)
#define NO_MEMBER 0, 0
#define FILE_ OPTION_IN_FILE
#define RELOAD (OPTION_IN_FILE | OPTION_RELOAD)

/* Columns: name, argument, group of --help, flags, setter, members of struct settings; then the text of --help. The
 * names and the order of the choices are those of the members' enums. The names of tm-profile are those of
 * tm_profile(), after auto.
 *
 * ack-delay-us: 250 us is a quarter of the shortest timeout that a peer can have, so that a late ACK does not make the
 * peer retransmit. */
// clang-format off
const struct option_def options[] = {
    {"config", "FILE", 1, 0, NULL, NO_MEMBER,
     .help = "Read options from FILE; the command line overrides them"},
    {"socket", "PATH", 1, FILE_, set_text, MEMBER(socket),
     .help = "Control socket"},
    {"group", "NAME", 1, FILE_, set_text, MEMBER(group),
     .help = "Let the members of a group use the daemon, too"},
    {"quota", "KIND=LIMIT[,KIND=LIMIT...]", 1, RELOAD, set_quota, MEMBER(quota),
     .help = "What each user may have at most, except for root and the user of the daemon, such as qps=1000,bytes=2G "
             "(all=auto: a share that leaves room for others)"},
    {"control-share", "PERCENT", 1, FILE_, set_number, MEMBER(control_share),
     .help = "Largest share of the time of each thread for the control requests of one user, except for root and the "
             "user of the daemon (50); 100: no limit",
     .unit = "a number", .min = 1, .max = 100},
    {"handshake-timeout", "SECONDS", 1, RELOAD, set_number, MEMBER(handshake_s),
     .help = "Close connections that ask for nothing and open no device in this time (30)",
     .unit = "a number of seconds", .min = 1, .max = 86400},
    {"idle-exit", "SECONDS", 1, FILE_, set_number, MEMBER(idle_exit_s),
     .help = "End when no program has used the daemon for so long (0)",
     .unit = "a number of seconds", .min = 0, .max = 31536000, .zero = "never"},
    {"sandbox", "on|off", 1, FILE_, set_choice, MEMBER(sandbox_off),
     .help = "Whether the daemon gives up the rights that it does not need (on)"},

    {"device", "NAME=ADDRESS", 2, OPTION_DEVICE, set_device, MEMBERS(device, devices),
     .help = "A device on an address of this host; up to 16"},
    {"address", "ADDRESS", 2, OPTION_DEVICE, set_address, NO_MEMBER,
     .help = "A device on ADDRESS; its name is the next of pumice0, pumice1, ..."},
    {"mtu", "auto|256|512|1024|2048|4096", 2, FILE_, set_choice, MEMBER(mtu),
     .help = "Path MTU; auto: the largest that fits the interface"},
    {"loopback", "engine|wire", 2, FILE_, set_choice, MEMBER(loopback_wire),
     .help = "Way of packets from a device to itself: inside the daemon, or through the UDP socket"},
    {"gso", "auto|on|off", 2, FILE_, set_choice, MEMBER(gso),
     .help = "Pass packets to the kernel in batches (GSO); auto: on, but off while a capture runs"},
    {"ecn", "on|off", 2, FILE_, set_switch, MEMBER(ecn),
     .help = "Mark packets as ECN-capable, and slow down when routers report congestion"},
    {"cnp-dscp", "N", 3, FILE_, set_number, MEMBER(cnp_dscp),
     .help = "DSCP of congestion notifications, 0 to 63 (that of their queue pair)",
     .unit = "a number", .min = 0, .max = 63},
    {"e2e-credits", "on|off", 2, FILE_, set_switch, MEMBER(e2e_credits),
     .help = "Tell peers by ACKs how many receive requests a queue pair has, and wait for those of the peer (off)"},
    {"selective", "on|off", 2, FILE_, set_switch, MEMBER(selective),
     .help = "Keep packets that come after a lost one, and tell other Pumice daemons which are missing (on)"},
    {"peers", "any|PREFIX[,PREFIX...]", 2, RELOAD, set_peers, MEMBER(peers),
     .help = "Drop packets from other addresses, and refuse connections to them (any)"},
    {"rcvbuf", "BYTES", 2, FILE_, set_number, MEMBER(rcvbuf),
     .help = "Size of the socket buffers to ask for (4194304)",
     .unit = "a number of bytes", .min = 65536, .max = 1u << 30},

    {"profile", PROFILE_NAMES, 2, FILE_, set_choice, MEMBER(profile),
     .help = "Be like this adapter: say of the devices what it says, have its limits, and refuse what it refuses"},
    {"tm-profile", "auto|generous|mlx5", 3, FILE_, set_choice, MEMBER(tm_profile),
     .help = "How strict tag matching is; auto: as the profile says; mlx5: with the limits of ConnectX adapters",
     .alias = "tm_profile"},
    {"window", "PACKETS", 3, FILE_, set_number, MEMBER(window_pkts),
     .help = "Largest number of unacknowledged packets of a queue pair",
     .unit = "a number of packets", .min = 1, .max = 1u << 22},
    {"max-resends", "PACKETS", 3, FILE_, set_number, MEMBER(max_resends),
     .help = "Most packets that a queue pair sends again in its turn while others wait (16); 0: as many as new ones",
     .unit = "a number of packets", .min = 0, .max = 1u << 22, .zero = "no limit of its own"},
    {"ack-delay-us", "US", 3, RELOAD, set_number, MEMBER(ack_delay_us),
     .help = "Longest delay of an ACK that the sender did not ask for; 0: none",
     .unit = "a number of microseconds", .min = 0, .max = 250, .zero = "off"},
    {"min-timeout-us", "US", 3, RELOAD, set_number, MEMBER(min_timeout_us),
     .help = "Shortest timeout of a queue pair; overrides its timeout attribute (1000)",
     .unit = "a number of microseconds", .min = 1000, .max = 60000000},
    {"idle-us", "US", 3, FILE_, set_number, MEMBER(idle_us),
     .help = "Time without work before the daemon sleeps (100)",
     .unit = "a number of microseconds", .min = 0, .max = 10000000, .zero = "sleep at once"},
    {"cpus", "any|N[,N...]", 3, FILE_, set_cpus, MEMBERS(cpu, cpus),
     .help = "Processors for the threads of the devices (any)"},
    {"memory", "auto|process_vm|proc_mem", 3, FILE_, set_choice, MEMBER(memory),
     .help = "How to reach the memory of programs"},
    {"memory-timeout", "MS", 3, FILE_, set_number, MEMBER(memory_timeout_ms),
     .help = "End a session if its memory does not answer for so long (3000). Without --group, a wait for the lock of its "
             "mappings may last 20 times as long",
     .unit = "a number of milliseconds", .min = MEMORY_LIMIT_MIN_MS, .max = 60000},

    {"connectivity", "off|warn|enforce", 4, FILE_, set_choice, MEMBER(path_check),
     .help = "Check by probes whether packets reach an address when it is first used, and log a failure, or refuse the "
             "address, too"},
    {"connectivity-tries", "N", 4, FILE_, set_number, MEMBER(path_check_tries),
     .help = "Give up after N probes, 250 ms apart (40)",
     .unit = "a number", .min = 1, .max = 10000},
    {"connectivity-map", "FILE", 4, FILE_, set_text, MEMBER(path_check_map),
     .help = "Append the result of each check to FILE"},
    {"net", "FILE", 4, FILE_, set_text, MEMBER(net),
     .help = "Emulate the network that FILE describes: bandwidths, latencies, queues"},
    {"fault", "SPEC", 4, RELOAD, set_fault, MEMBER(fault),
     .help = "Faults for the packets sent, such as loss=1%,dup=2%"},
    {"seed", "NUMBER", 4, RELOAD, set_seed, MEMBERS(seed, has_seed),
     .help = "Seed of the faults, of unkind devices and of the QP numbers"},
    {"unkind", "off|all|KIND[,KIND...]", 4, FILE_, set_unkind, MEMBER(unkind),
     .help = "What specifications allow and Pumice otherwise never does, such as placement (off)"},

    {"log-level", "error|warn|info|debug[,AREA=LEVEL...]", 5, RELOAD, set_log_level, MEMBER(log_levels),
     .help = "What to log on standard error (warn); areas: daemon, net, session, qp, packet"},
    {"log-format", "text|json", 5, RELOAD, set_choice, MEMBER(log_json),
     .help = "One line of text for each message, or one JSON object"},
    {"metrics", "[ADDRESS:]PORT", 5, FILE_, set_metrics, MEMBER(metrics),
     .help = "Serve counters for Prometheus by HTTP, on a loopback address only"},
    {"ready-fd", "FD", 5, 0, set_number, MEMBER(ready_fd),
     .help = "Write the line \"ready\" to this descriptor when the daemon accepts connections",
     .unit = "the number of an open file descriptor", .min = 0, .max = INT_MAX},
    {"decisions-fd", "FD", 5, 0, set_number, MEMBER(decisions_fd),
     .help = "Memory with the decisions about single packets, for pumice run --record and pumice replay",
     .unit = "the number of an open file descriptor", .min = 0, .max = INT_MAX},
    {"foreground", NULL, 5, 0, NULL, NO_MEMBER,
     .help = "Stay in the foreground (the daemon always does)",
     .letter = 'f'},
    {.name = NULL},
};
// clang-format on
_Static_assert(sizeof(options) / sizeof(options[0]) <= OPTIONS_MAX, "OPTIONS_MAX");

int option_set(const struct option_def *o, struct settings *s, const char *value, char why[ERROR_TEXT_MAX])
{
    if ((o->flags & OPTION_DEVICE) && s->devices_replaceable) {
        memset(s->device, 0, sizeof(s->device));
        s->devices = 0;
        s->devices_replaceable = false;
    }
    return o->set(o, s, value, why);
}

int options_set(struct settings *s, const char *name, const char *value, char why[ERROR_TEXT_MAX])
{
    for (const struct option_def *o = options; o->name; o++) {
        if (o->set && (strcmp(name, o->name) == 0 || (o->alias && strcmp(name, o->alias) == 0)))
            return option_set(o, s, value, why);
    }
    snprintf(why, ERROR_TEXT_MAX, "unknown option \"%.80s\": pumiced(8) lists all options", name);
    return -EINVAL;
}

bool option_is_equal(const struct option_def *o, const struct settings *a, const struct settings *b)
{
    return memcmp((const char *)a + o->offset, (const char *)b + o->offset, o->size) == 0;
}

void option_copy(const struct option_def *o, struct settings *to, const struct settings *from)
{
    memcpy((char *)to + o->offset, (const char *)from + o->offset, o->size);
}
