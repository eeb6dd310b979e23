// SPDX-License-Identifier: BSD-2-Clause
/* pumice ping HOST: checks that small and large packets reach another host, and that its answers come back. */
#include "src/cmd/net/net.h"

#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/net/ping_text.h"
#include "wire/gid.h"

#define SMALL 24u /* bytes of payload: a probe without padding */
#define POLL_US 2000 /* between two requests to the daemon for the answer */

struct ping_options {
    struct target_options target;
    bool json;
    long tries, interval_ms, size;
    const char *device, *host;
};

static const struct argp_option options[] = {
    {"tries", 'c', "N", 0, "Send each probe at most N times; default: 40", 0},
    {"interval", 'i', "MS", 0, "Wait MS milliseconds for each answer; default: 250", 0},
    {"size", 's', "BYTES", 0, "Payload of the large probes; default: the path MTU of the device", 0},
    {"device", 'd', "NAME", 0, "Send from this device", 0},
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {0},
};

static const char doc[] =
    "Checks that small packets, and packets as large as the path MTU, reach the daemon of another host, and that its "
    "answers come back. If not, prints what may be wrong.\v"
    "Exit code: 0 if both arrive, 2 if large packets do not (MTU), 3 if small ones do not, 4 if neither does; 1 if the "
    "check was not possible.";

static long number(struct argp_state *state, const char *name, const char *text, long least, long most)
{
    long n = parse_number(text, least, most);

    if (n < 0)
        argp_error(state, "--%s: invalid value \"%s\": expected a number from %ld to %ld", name, text, least, most);
    return n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ping_options *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case 'c':
        o->tries = number(state, "tries", arg, 1, 10000);
        break;
    case 'i':
        o->interval_ms = number(state, "interval", arg, 1, 60000);
        break;
    case 's':
        o->size = number(state, "size", arg, SMALL, 4096);
        break;
    case 'd':
        o->device = arg;
        break;
    case 'j':
        o->json = true;
        break;
    case ARGP_KEY_ARG:
        if (o->host)
            argp_error(state, "unexpected argument '%s': give one host", arg);
        o->host = arg;
        break;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no host given");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* --- addresses and devices ---------------------------------------------------------------------------------------- */

static bool resolve(const char *host, uint8_t gid[16])
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list;
    int rc = getaddrinfo(host, NULL, &hints, &list);

    if (rc) {
        say("%s: %s", host, gai_strerror(rc));
        return false;
    }
    if (list->ai_family == AF_INET)
        gid_from_v4(gid, &((const struct sockaddr_in *)(const void *)list->ai_addr)->sin_addr);
    else
        memcpy(gid, &((const struct sockaddr_in6 *)(const void *)list->ai_addr)->sin6_addr, 16);
    freeaddrinfo(list);
    return true;
}

static bool parse_gid(const json_t *entry, uint8_t gid[16])
{
    const char *text = json_string_value(json_object_get(entry, "gid"));

    return text && inet_pton(AF_INET6, text, gid) == 1;
}

static bool is_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Finds the address from which the daemon sends a probe to p->gid: the same choice as that of the daemon. If no address
 * of the device has the family, p->own is the first one. Returns whether an address has the family. */
static bool choose_source(const json_t *device, struct ping *p)
{
    const json_t *entry;
    bool found = false;
    uint8_t gid[16];
    size_t i;

    parse_gid(device, p->own);
    json_array_foreach (json_object_get(device, "gids"), i, entry) {
        if (!parse_gid(entry, gid) || gid_is_v4(gid) != gid_is_v4(p->gid))
            continue;
        if (!found || (is_link_local(gid) == is_link_local(p->gid) && is_link_local(p->own) != is_link_local(p->gid)))
            memcpy(p->own, gid, sizeof(gid));
        found = true;
    }
    return found;
}

static bool has_gid(const json_t *device, const uint8_t wanted[16])
{
    const json_t *entry;
    uint8_t gid[16];
    size_t i;

    json_array_foreach (json_object_get(device, "gids"), i, entry) {
        if (parse_gid(entry, gid) && memcmp(gid, wanted, sizeof(gid)) == 0)
            return true;
    }
    return false;
}

/* Chooses the device to send from. Returns false after printing an error. */
static bool choose_device(const struct ping_options *o, const json_t *status, struct ping *p)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(status, "devices"), i, device) {
        const char *name = json_string_value(json_object_get(device, "name"));

        if (!name || (o->device && strcmp(o->device, name) != 0))
            continue;
        if (!choose_source(device, p) && !o->device)
            continue;
        p->device = (uint32_t)i;
        snprintf(p->name, sizeof(p->name), "%s", name);
        p->mtu = (uint32_t)json_integer_value(json_object_get(device, "mtu"));
        p->probe[LARGE].size = o->size ? (uint32_t)o->size : p->mtu;
        return true;
    }
    if (o->device)
        say("the daemon has no device %s (pumice status lists them)", o->device);
    else
        say("no device of the daemon has an %s address, which %s has", gid_is_v4(p->gid) ? "IPv4" : "IPv6", o->host);
    return false;
}

/* In a lab, finds the daemon that has the destination address, and its device. */
static void find_other_host(const struct targets *t, struct ping *p)
{
    const json_t *device;
    json_t *status;
    size_t k;

    for (unsigned i = 0; i < t->n && !p->other[0]; i++) {
        char path[SOCKET_PATH_MAX];

        targets_socket(t, i, path);
        status = control_fetch(path, PM_OP_STATUS, NULL, 0);
        json_array_foreach (json_object_get(status, "devices"), k, device) {
            if (has_gid(device, p->gid)) {
                strcpy(p->other, path);
                p->other_device = (uint32_t)k;
            }
        }
        json_decref(status);
    }
}

static unsigned sending_host(const struct targets *t, const struct target_options *w)
{
    const char *host = getenv(PM_ENV_HOST);
    long n = host ? parse_number(host, 0, HOSTS_MAX - 1) : -1;

    return w->host < 0 && n >= 0 && n < (long)t->n ? (unsigned)n : 0;
}

/* --- requests to the daemon --------------------------------------------------------------------------------------- */

static bool ask(int sock, const struct pm_check_req *req, struct pm_check_rep *rep)
{
    struct control_call call = {
        .op = PM_OP_CHECK, .req = req, .req_len = sizeof(*req), .rep = rep, .rep_len = sizeof(*rep)};
    int err = control_call(sock, &call);

    if (err)
        say("the daemon can't send a probe: %s", call.why[0] ? call.why : strerror(-err));
    return err == 0;
}

/* Asks a daemon how many probes its device has received from an address. */
static bool count_heard(int sock, uint32_t device, const uint8_t gid[16], uint64_t *count)
{
    struct pm_check_req req = {.device = device};
    struct pm_check_rep rep = {0};

    memcpy(req.gid, gid, sizeof(req.gid));
    if (!ask(sock, &req, &rep))
        return false;
    *count = rep.heard;
    return true;
}

/* The number of packets with a wrong ICRC that a daemon's device has received; 0 if the daemon does not answer. */
static uint64_t count_damaged(const char *path, uint32_t device)
{
    json_t *status = control_fetch(path, PM_OP_STATUS, NULL, 0);
    const json_t *d = json_array_get(json_object_get(status, "devices"), device);
    json_int_t n = json_integer_value(json_object_get(json_object_get(d, "counters"), "rx_icrc_errors"));

    json_decref(status);
    return (uint64_t)n;
}

static bool count_heard_there(const struct ping *p, uint64_t *count)
{
    int sock = p->other[0] ? control_open(p->other) : -1;
    bool good = sock >= 0 && count_heard(sock, p->other_device, p->own, count);

    if (sock >= 0)
        close(sock);
    return good;
}

/* --- probes ------------------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool send_probe(int sock, struct ping *p, struct ping_probe *probe, uint64_t *id)
{
    struct pm_check_req req = {.device = p->device, .size = probe->size};
    struct pm_check_rep rep = {0};

    memcpy(req.gid, p->gid, sizeof(req.gid));
    if (!ask(sock, &req, &rep))
        return false;
    *id = rep.id;
    probe->sent++;
    return true;
}

static bool poll_probe(int sock, const struct ping *p, struct ping_probe *probe, uint64_t id)
{
    struct pm_check_req req = {.device = p->device, .id = id};
    struct pm_check_rep rep = {0};

    memcpy(req.gid, p->gid, sizeof(req.gid));
    if (!ask(sock, &req, &rep))
        return false;
    if (rep.state != PM_CHECK_WAITING)
        probe->result = rep;
    return true;
}

/* One round: sends the probes that have no answer yet, and waits for their answers. */
static bool try_once(int sock, struct ping *p, double wait)
{
    uint64_t id[PING_SIZES] = {0};
    double end = seconds() + wait;

    for (unsigned i = 0; i < PING_SIZES; i++) {
        if (!ping_arrived(&p->probe[i]) && !send_probe(sock, p, &p->probe[i], &id[i]))
            return false;
    }
    for (;;) {
        bool all = true;

        for (unsigned i = 0; i < PING_SIZES; i++) {
            if (!ping_arrived(&p->probe[i]) && !poll_probe(sock, p, &p->probe[i], id[i]))
                return false;
            all = all && ping_arrived(&p->probe[i]);
        }
        if (all || seconds() >= end)
            return true;
        usleep(POLL_US);
    }
}

static bool try_all(const struct ping_options *o, int sock, struct ping *p)
{
    uint64_t here = 0, there = 0;
    bool knows_there = count_heard_there(p, &there);

    if (!count_heard(sock, p->device, p->gid, &here))
        return false;
    for (long i = 0; i < o->tries && !(ping_arrived(&p->probe[0]) && ping_arrived(&p->probe[1])); i++) {
        if (!try_once(sock, p, (double)o->interval_ms / 1e3))
            return false;
    }
    if (count_heard(sock, p->device, p->gid, &p->heard_here))
        p->heard_here -= here;
    p->knows_there = knows_there && count_heard_there(p, &p->heard_there);
    if (p->knows_there)
        p->heard_there -= there;
    return true;
}

static void print(const struct ping *p, bool json)
{
    if (!json) {
        ping_print(p);
        return;
    }
    json_t *o = ping_json(p);
    json_dumpf(o, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(o);
}

int cmd_ping(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "HOST", doc, target_options_child, NULL, NULL};
    struct ping_options o = {.target = TARGET_OPTIONS_NONE, .tries = 40, .interval_ms = 250};
    struct ping p = {.probe = {[SMALL_ONE] = {.size = SMALL}}};
    char path[SOCKET_PATH_MAX];
    struct targets t, all;
    json_t *status;
    bool good;
    int sock;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    p.host = o.host;
    if (!resolve(o.host, p.gid) || target_options_find(&o.target, &t) != 0)
        return 1;
    targets_socket(&t, sending_host(&t, &o.target), path);
    status = control_fetch(path, PM_OP_STATUS, NULL, 0);
    good = status && choose_device(&o, status, &p);
    json_decref(status);
    if (!good)
        return 1;
    if (t.first >= 0 && targets_find(&all, NULL, -1) == 0)
        find_other_host(&all, &p);
    sock = control_open(path);
    if (sock < 0) {
        control_explain(path, sock, "");
        return 1;
    }
    p.damaged_here = count_damaged(path, p.device);
    p.damaged_there = p.other[0] ? count_damaged(p.other, p.other_device) : 0;
    good = try_all(&o, sock, &p);
    close(sock);
    if (!good)
        return 1;
    p.damaged_here = count_damaged(path, p.device) - p.damaged_here;
    p.damaged_there = p.other[0] ? count_damaged(p.other, p.other_device) - p.damaged_there : 0;
    print(&p, o.json);
    return ping_exit_code(&p);
}
