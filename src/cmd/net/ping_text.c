// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/net/ping_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "wire/gid.h"

#define HINTS_MAX 8
#define HINT_LEN 400
#define HEADERS_V4 (20 + 8 + 12 + 8 + 4) /* IP, UDP, BTH, DETH, ICRC */
#define HEADERS_V6 (HEADERS_V4 + 20)

struct hints {
    char text[HINTS_MAX][HINT_LEN];
    unsigned n;
};

static const char *address(const uint8_t gid[16], char out[INET6_ADDRSTRLEN])
{
    if (gid_is_v4(gid))
        inet_ntop(AF_INET, gid + 12, out, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, gid, out, INET6_ADDRSTRLEN);
    return out;
}

int ping_exit_code(const struct ping *p)
{
    bool small = ping_arrived(&p->probe[SMALL_ONE]), large = ping_arrived(&p->probe[LARGE]);

    return small && large ? 0 : small ? 2 : large ? 3 : 4;
}

static const char *verdict(const struct ping *p)
{
    static const char *const texts[] = {
        [0] = "OK: small and large packets are answered.",
        [2] = "MTU: small packets are answered, large packets are not.",
        [3] = "ODD: large packets are answered, small packets are not.",
        [4] = "NO CONNECTION: neither small nor large packets are answered.",
    };

    return texts[ping_exit_code(p)];
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

#define hint(h, ...)                                                                                                   \
    do {                                                                                                               \
        if ((h)->n < HINTS_MAX)                                                                                        \
            snprintf((h)->text[(h)->n++], HINT_LEN, __VA_ARGS__);                                                      \
    } while (0)

static uint32_t length_of(const struct ping *p, uint32_t size)
{
    return size + (gid_is_v4(p->gid) ? HEADERS_V4 : HEADERS_V6);
}

/* The largest path MTU (256 ... 4096) whose packets fit into an IP MTU, with the longest headers of RoCE; 0: none. */
static uint32_t path_mtu_for(uint32_t mtu)
{
    for (uint32_t m = 4096; m >= 256; m /= 2) {
        if (m + 76 <= mtu)
            return m;
    }
    return 0;
}

/* Hints if only large packets are lost. */
static void hint_large_lost(const struct ping *p, struct hints *h)
{
    const struct pm_check_rep *result = &p->probe[LARGE].result;
    char text[INET6_ADDRSTRLEN];
    uint32_t fits;

    if (result->state == PM_CHECK_TOO_LONG && result->by_icmp) {
        fits = path_mtu_for(result->mtu);
        hint(h,
             "The router %s reports (ICMP, fragmentation needed) that it forwards at most %u bytes. These packets have "
             "%u bytes.",
             address(result->from, text), result->mtu, length_of(p, p->probe[LARGE].size));
        if (fits)
            hint(h,
                 "Start pumiced with --mtu %u on both hosts, or set this path MTU in programs (perftest: -m %u), or "
                 "raise the MTU on the path.",
                 fits, fits);
        return;
    }
    if (result->state == PM_CHECK_TOO_LONG) {
        hint(
            h,
            "This host does not send packets of %u bytes, because the MTU of the interface is smaller (see `ip link`). "
            "Start pumiced with a smaller --mtu.",
            length_of(p, p->probe[LARGE].size));
        return;
    }
    hint(h,
         "Packets of %u bytes are lost without an error message. An interface, switch or tunnel on the path has a "
         "smaller MTU, and no ICMP message comes back. A firewall that drops ICMP makes such a black hole.",
         length_of(p, p->probe[LARGE].size));
    hint(h,
         "Compare the MTUs of both hosts (`ip link`) and of the path. Try `pumice ping --size 1024` and smaller sizes. "
         "Then start pumiced on both hosts with a --mtu that arrives.");
}

/* Hints if no packet is answered. */
static void hint_no_answer(const struct ping *p, struct hints *h)
{
    const struct pm_check_rep *result = &p->probe[SMALL_ONE].result;
    char there[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];

    address(p->gid, there);
    if (result->state == PM_CHECK_ERROR && result->error == ECONNREFUSED) {
        hint(h,
             "No program listens on UDP port 4791 of %s (ICMP, port unreachable). Check that pumiced is running there, "
             "on this address.",
             there);
        return;
    }
    if (result->state == PM_CHECK_ERROR) {
        hint(h, "%s%s: %s.", result->by_icmp ? "ICMP from " : "This host can't send to it",
             result->by_icmp ? address(result->from, text) : "", strerror((int)result->error));
        hint(h, "%s",
             result->error == EPERM ? "A firewall of this host forbids it: allow UDP port 4791 (`pumice doctor`)."
                                    : "Check that there is a route (`ip route get ADDRESS`) and that the host is up.");
        return;
    }
    if (p->damaged_here || p->damaged_there)
        hint(h,
             "%" PRIu64
             " packets arrived %s with a wrong ICRC during the check. The ICRC covers the addresses. Something on the "
             "path, such as NAT, may change them. RoCE does not work over such a path.",
             p->damaged_here ? p->damaged_here : p->damaged_there, p->damaged_here ? "here" : "there");
    if (p->heard_here)
        hint(h,
             "ONE-WAY: %" PRIu64 " probes of %s arrived here during the check, so the path from there works. The "
             "packets of this host are lost, or only the answers are lost.",
             p->heard_here, there);
    if (p->knows_there && p->heard_there)
        hint(h,
             "ONE-WAY: %" PRIu64 " of the probes arrived at %s and were answered, so the path from there back to here "
             "is broken.",
             p->heard_there, there);
    else if (p->knows_there)
        hint(h, "None of the probes arrived at %s, so the path from here to there is broken.", there);
    if (p->heard_here || p->knows_there || p->damaged_here) {
        hint(h, "Check for injected faults (`pumice status`), firewalls, and routes that differ by direction.");
        return;
    }
    hint(h,
         "Check that %s is the address of a running pumiced (`pumice status` there). NICs and soft-RoCE do not answer "
         "these probes.",
         there);
    hint(h,
         "Check whether a firewall on either host, or between them, drops UDP port 4791. As root, on both: tcpdump -ni "
         "any udp port 4791");
    hint(h, "Run `pumice ping` on both hosts at the same time: each then reports whether the other's probes arrive.");
}

static void collect(const struct ping *p, struct hints *h)
{
    char asked[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];

    for (unsigned i = 0; i < PING_SIZES; i++) {
        if (!ping_arrived(&p->probe[i]) || memcmp(p->probe[i].result.from, p->gid, sizeof(p->gid)) == 0)
            continue;
        hint(h,
             "ASYMMETRIC: the probe went to %s, but %s answered. A queue pair drops packets from another address than "
             "its peer's. Use the second address, or fix the routes of the other host.",
             address(p->gid, asked), address(p->probe[i].result.from, from));
        break;
    }
    switch (ping_exit_code(p)) {
    case 2:
        hint_large_lost(p, h);
        break;
    case 3:
        hint(h, "The MTU is not the reason. Packets may be lost at random, or a firewall may drop short packets. Try "
                "again, and compare captures on both hosts.");
        break;
    case 4:
        hint_no_answer(p, h);
        break;
    default:
        break;
    }
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_probe(const struct ping *p, const char *what, const struct ping_probe *probe)
{
    printf("  %s (%u bytes on the wire): ", what, length_of(p, probe->size));
    if (ping_arrived(probe))
        printf("answered after %.0f us, sent %u time%s\n", (double)probe->result.rtt_ns / 1e3, probe->sent,
               probe->sent == 1 ? "" : "s");
    else
        printf("no answer, sent %u time%s\n", probe->sent, probe->sent == 1 ? "" : "s");
}

void ping_print(const struct ping *p)
{
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    struct hints h = {.n = 0};

    printf("%s (%s) from %s (%s)\n", p->host, address(p->gid, to), p->name, address(p->own, from));
    print_probe(p, "small", &p->probe[SMALL_ONE]);
    print_probe(p, "large", &p->probe[LARGE]);
    puts(verdict(p));
    collect(p, &h);
    for (unsigned i = 0; i < h.n; i++)
        printf("  - %s\n", h.text[i]);
}

static json_t *probe_json(const struct ping_probe *probe)
{
    static const char *const states[] = {"silence", "answered", "too_long", "error"};
    const struct pm_check_rep *t = &probe->result;
    char text[INET6_ADDRSTRLEN];
    json_t *o = json_pack("{s:i, s:i, s:s}", "size", (int)probe->size, "sent", (int)probe->sent, "result",
                          t->state < 4 ? states[t->state] : "?");

    if (t->state == PM_CHECK_ANSWERED)
        json_object_set_new(o, "rtt_us", json_real((double)t->rtt_ns / 1e3));
    if (t->state == PM_CHECK_ANSWERED || t->by_icmp)
        json_object_set_new(o, "from", json_string(address(t->from, text)));
    if (t->state == PM_CHECK_TOO_LONG)
        json_object_set_new(o, "mtu", json_integer(t->mtu));
    if (t->state == PM_CHECK_ERROR)
        json_object_set_new(o, "error", json_string(strerror((int)t->error)));
    return o;
}

json_t *ping_json(const struct ping *p)
{
    static const char *const verdicts[] = {[0] = "ok", [2] = "large_lost", [3] = "small_lost", [4] = "both_lost"};
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    struct hints h = {.n = 0};
    json_t *list = json_array(), *root;

    collect(p, &h);
    for (unsigned i = 0; i < h.n; i++)
        json_array_append_new(list, json_string(h.text[i]));
    root = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:o, s:I, s:o}", "host", p->host, "address",
                     address(p->gid, to), "from", address(p->own, from), "verdict", verdicts[ping_exit_code(p)],
                     "small", probe_json(&p->probe[SMALL_ONE]), "large", probe_json(&p->probe[LARGE]), "heard_here",
                     (json_int_t)p->heard_here, "heard_there",
                     p->knows_there ? json_integer((json_int_t)p->heard_there) : json_null(), "damaged_here",
                     (json_int_t)p->damaged_here, "hints", list);
    return root;
}
