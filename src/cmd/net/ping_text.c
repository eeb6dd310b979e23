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
        [0] = "OK: small and large packets arrive and are answered.",
        [2] = "MTU: small packets arrive and are answered, large ones are not.",
        [3] = "ODD: large packets arrive and are answered, small ones are not.",
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

/* The path MTU (256 ... 4096) whose packets fit into an IP MTU, with the longest headers that RoCE has; 0: none. */
static uint32_t path_mtu_for(uint32_t mtu)
{
    for (uint32_t m = 4096; m >= 256; m /= 2) {
        if (m + 76 <= mtu)
            return m;
    }
    return 0;
}

static void large_is_lost(const struct ping *p, struct hints *h)
{
    const struct pm_check_rep *told = &p->probe[LARGE].told;
    char text[INET6_ADDRSTRLEN];
    uint32_t fits;

    if (told->state == PM_CHECK_TOO_LONG && told->by_icmp) {
        fits = path_mtu_for(told->mtu);
        hint(
            h,
            "The router %s says (ICMP, fragmentation needed) that it forwards at most %u bytes; these packets have %u.",
            address(told->from, text), told->mtu, length_of(p, p->probe[LARGE].size));
        if (fits)
            hint(h,
                 "Start pumiced with --mtu %u on both hosts, or give programs that path MTU (perftest: -m %u), or "
                 "raise the "
                 "MTU on the way.",
                 fits, fits);
        return;
    }
    if (told->state == PM_CHECK_TOO_LONG) {
        hint(h,
             "This host does not send packets of %u bytes: the MTU of the interface is smaller. `ip link` shows it; "
             "start pumiced with a smaller --mtu.",
             length_of(p, p->probe[LARGE].size));
        return;
    }
    hint(
        h,
        "Packets of %u bytes vanish without a word: some interface, switch or tunnel on the way has a smaller MTU, and "
        "no ICMP message comes back (a firewall that drops ICMP makes such black holes).",
        length_of(p, p->probe[LARGE].size));
    hint(
        h,
        "Compare `ip link` on both hosts and what is between; try `pumice ping --size 1024` and smaller; start pumiced "
        "with a --mtu that passes on both hosts.");
}

static void nobody_answers(const struct ping *p, struct hints *h)
{
    const struct pm_check_rep *told = &p->probe[SMALL_ONE].told;
    char there[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];

    address(p->gid, there);
    if (told->state == PM_CHECK_ERROR && told->error == ECONNREFUSED) {
        hint(h,
             "Nobody listens on UDP port 4791 of %s (ICMP, port unreachable): is pumiced running there, on that "
             "address?",
             there);
        return;
    }
    if (told->state == PM_CHECK_ERROR) {
        hint(h, "%s%s: %s.", told->by_icmp ? "ICMP from " : "This host can't send to it",
             told->by_icmp ? address(told->from, text) : "", strerror((int)told->error));
        hint(h, "%s",
             told->error == EPERM ? "A firewall of this host forbids it: allow UDP port 4791 (`pumice doctor`)."
                                  : "`ip route get` and the address: is there a route, and is the host up?");
        return;
    }
    if (p->damaged_here || p->damaged_there)
        hint(h,
             "%" PRIu64
             " packets came in %s with a wrong ICRC meanwhile. The ICRC covers the addresses: something on the "
             "way, such as NAT, may change them. RoCE does not get through that.",
             p->damaged_here ? p->damaged_here : p->damaged_there, p->damaged_here ? "here" : "there");
    if (p->heard_here)
        hint(h,
             "ONE-WAY: %" PRIu64 " probes that %s sent meanwhile came in here, so the path from there works: what this "
             "host sends is lost, or the answers alone are.",
             p->heard_here, there);
    if (p->knows_there && p->heard_there)
        hint(h,
             "ONE-WAY: %" PRIu64 " of the probes came in at %s, and were answered: the path from there back to here is "
             "broken.",
             p->heard_there, there);
    else if (p->knows_there)
        hint(h, "None of the probes came in at %s: the path from here to there is broken.", there);
    if (p->heard_here || p->knows_there || p->damaged_here) {
        hint(h, "Look at faults (`pumice status`), firewalls, and routes that differ by direction.");
        return;
    }
    hint(h,
         "Is %s the address of a pumiced that runs (`pumice status` there)? NICs and soft-RoCE don't answer these "
         "probes.",
         there);
    hint(
        h,
        "Does a firewall on either host or between them drop UDP port 4791? As root, on both: tcpdump -ni any udp port "
        "4791");
    hint(h, "Run `pumice ping` there, to here, at the same time: then each says whether the other's probes arrive.");
}

static void collect(const struct ping *p, struct hints *h)
{
    char asked[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];

    for (unsigned i = 0; i < PING_SIZES; i++) {
        if (!ping_arrived(&p->probe[i]) || memcmp(p->probe[i].told.from, p->gid, sizeof(p->gid)) == 0)
            continue;
        hint(h,
             "ASYMMETRIC: %s was asked, and %s answered. Queue pairs drop what comes from another address than their "
             "peer's: use that one, or mend the routes of the other host.",
             address(p->gid, asked), address(p->probe[i].told.from, from));
        break;
    }
    switch (ping_exit_code(p)) {
    case 2:
        large_is_lost(p, h);
        break;
    case 3:
        hint(h,
             "That is no matter of MTU. A firewall that looks into short packets, or losses: try again, and look at a "
             "capture on both hosts.");
        break;
    case 4:
        nobody_answers(p, h);
        break;
    default:
        break;
    }
}

/* --- showing ------------------------------------------------------------------------------------------------------ */

static void show_probe(const struct ping *p, const char *what, const struct ping_probe *probe)
{
    printf("  %s (%u bytes on the wire): ", what, length_of(p, probe->size));
    if (ping_arrived(probe))
        printf("answered after %.0f us, sent %u time%s\n", (double)probe->told.rtt_ns / 1e3, probe->sent,
               probe->sent == 1 ? "" : "s");
    else
        printf("no answer, sent %u time%s\n", probe->sent, probe->sent == 1 ? "" : "s");
}

void ping_show(const struct ping *p)
{
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    struct hints h = {.n = 0};

    printf("%s (%s) from %s (%s)\n", p->host, address(p->gid, to), p->name, address(p->own, from));
    show_probe(p, "small", &p->probe[SMALL_ONE]);
    show_probe(p, "large", &p->probe[LARGE]);
    puts(verdict(p));
    collect(p, &h);
    for (unsigned i = 0; i < h.n; i++)
        printf("  - %s\n", h.text[i]);
}

static json_t *probe_json(const struct ping_probe *probe)
{
    static const char *const states[] = {"silence", "answered", "too_long", "error"};
    const struct pm_check_rep *t = &probe->told;
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
