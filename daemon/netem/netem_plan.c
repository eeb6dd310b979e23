// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/netem/netem_plan.h"

#include <errno.h>
#include <string.h>

#include "daemon/fault/fault_text.h"

static const struct unit rates[] = {{"kbit", 1000}, {"Mbit", 1000000}, {"Gbit", 1000000000}, {NULL, 0}};
static const struct unit sizes[] = {{"B", 1},        {"kB", 1000},      {"KiB", 1u << 10},
                                    {"MB", 1000000}, {"MiB", 1u << 20}, {NULL, 0}};
#define RATE_MAX 10000000000000ull /* 10 Tbit/s */
#define SIZE_MAX_BYTES (1ull << 40)

#define A_RATE "a bandwidth such as 100Mbit or 25Gbit"
#define A_TIME "a time up to 10s, such as 20us"
#define A_SIZE "size such as 64KiB or 1MB"

struct reader {
    struct fault_text text;
    struct netem_plan *plan;
    struct str named[NETEM_HOSTS]; /* where the plan names a host first; len 0: nowhere */
};

#define ERROR(r, word, ...) fault_text_error(&(r)->text, (word).p, __VA_ARGS__)

static int expected(const struct reader *r, struct str word, const char *what)
{
    if (word.len == 0)
        return ERROR(r, word, "the line ends here: expected %s", what);
    return ERROR(r, word, "'%.*s': expected %s", (int)word.len, word.p, what);
}

/* --- links ------------------------------------------------------------------------------------- */

static int expect_end(struct reader *r, struct str rest)
{
    return rest.len ? expected(r, rest, "a comma before the next part") : 0;
}

/* [to SIZE] */
static int read_mark_end(struct reader *r, struct str rest, struct netem_link *l)
{
    struct str before = rest;

    if (!str_is(str_word(&rest), "to"))
        return expect_end(r, before);
    struct str value = str_word(&rest);
    if (!str_to_amount(value, sizes, SIZE_MAX_BYTES, &l->mark_all_bytes) || l->mark_all_bytes <= l->mark_bytes)
        return expected(r, value, "a larger " A_SIZE);
    return expect_end(r, rest);
}

static int read_part(struct reader *r, struct str part, struct netem_link *l)
{
    const struct {
        const char *name;
        uint64_t *member;
        const struct unit *units; /* NULL: a time */
        uint64_t max;
        const char *wanted;
    } parts[] = {
        {"rate", &l->bits_per_s, rates, RATE_MAX, A_RATE},
        {"latency", &l->latency_ns, NULL, NETEM_LATENCY_MAX_NS, A_TIME},
        {"jitter", &l->jitter_ns, NULL, NETEM_LATENCY_MAX_NS, A_TIME},
        {"queue", &l->queue_bytes, sizes, SIZE_MAX_BYTES, "a " A_SIZE},
        {"mark", &l->mark_bytes, sizes, SIZE_MAX_BYTES, "a " A_SIZE},
    };
    struct str name = str_word(&part), value = str_word(&part);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!str_is(name, parts[i].name))
            continue;
        if (*parts[i].member)
            return ERROR(r, name, "%s is given twice", parts[i].name);
        bool right = parts[i].units ? str_to_amount(value, parts[i].units, parts[i].max, parts[i].member)
                                    : str_to_time(value, parts[i].max, parts[i].member);
        if (!right || *parts[i].member == 0)
            return expected(r, value, parts[i].wanted);
        return parts[i].member == &l->mark_bytes ? read_mark_end(r, part, l) : expect_end(r, part);
    }
    return expected(r, name, "rate, latency, jitter, queue or mark");
}

/* Reads a link and adds it. *index: its place, plus 1. */
static int read_link(struct reader *r, struct str text, uint16_t *index)
{
    struct netem_plan *p = r->plan;
    struct netem_link *l = &p->link[p->num_links];
    struct str rest = text;

    if (p->num_links == NETEM_LINKS)
        return ERROR(r, text, "too many links: at most %u", NETEM_LINKS);
    do {
        int err = read_part(r, str_trim(str_cut(&rest, ',')), l);

        if (err)
            return err;
    } while (rest.len);
    if ((l->queue_bytes || l->mark_bytes) && !l->bits_per_s)
        return ERROR(r, text, "a link without a rate has no queue: give a rate, too");
    *index = (uint16_t)++p->num_links;
    return 0;
}

/* --- hosts and racks --------------------------------------------------------------------------- */

static int read_host(struct reader *r, struct str word, unsigned *host)
{
    uint64_t n;

    if (!str_to_number(word, NETEM_HOSTS - 1, &n))
        return expected(r, word, "the number of a host, from 0 to 255");
    *host = (unsigned)n;
    return 0;
}

/* Reads a host that links or racks have. */
static int read_end_host(struct reader *r, struct str word, unsigned *host)
{
    int err = read_host(r, word, host);

    if (!err && !r->named[*host].len)
        r->named[*host] = word;
    return err;
}

static unsigned find_rack(const struct netem_plan *p, struct str name)
{
    unsigned i = 0;

    while (i < p->num_racks && !str_is(name, p->rack_name[i]))
        i++;
    return i;
}

static bool is_name(struct str s)
{
    static const char *const taken[] = {"host", "rack", "default", "from", "to", "each"};

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (str_is(s, taken[i]))
            return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (i && c >= '0' && c <= '9')))
            return false;
    }
    return s.len && s.len < NETEM_NAME_MAX;
}

static int put_in_rack(struct reader *r, struct str word, unsigned first, unsigned last)
{
    if (last < first)
        return expected(r, word, "hosts in their order, such as 0-3");
    for (unsigned i = first; i <= last; i++) {
        if (r->plan->rack_of[i])
            return ERROR(r, word, "host %u is already in a rack", i);
        r->plan->rack_of[i] = (uint8_t)r->plan->num_racks;
        if (!r->named[i].len)
            r->named[i] = word;
    }
    return 0;
}

/* rack NAME: N, N-N, … */
static int read_rack(struct reader *r, struct str head, struct str hosts)
{
    struct netem_plan *p = r->plan;
    struct str name = str_word(&head);
    int err = 0;

    if (!is_name(name) || head.len)
        return expected(r, head.len ? head : name, "a name of letters and digits, at most 15");
    if (find_rack(p, name) < p->num_racks)
        return ERROR(r, name, "this rack is described twice");
    if (p->num_racks == NETEM_RACKS)
        return ERROR(r, name, "too many racks: at most %u", NETEM_RACKS);
    memcpy(p->rack_name[p->num_racks++], name.p, name.len);
    do {
        struct str item = str_trim(str_cut(&hosts, ',')), word = item;
        bool range = str_has(item, '-');
        unsigned first = 0, last;

        err = read_host(r, str_trim(str_cut(&item, '-')), &first);
        last = first;
        if (!err && range)
            err = read_host(r, str_trim(item), &last);
        if (!err)
            err = put_in_rack(r, word, first, last);
    } while (!err && hosts.len);
    return err;
}

static uint32_t hash_of(const uint8_t gid[16])
{
    uint32_t h = 2166136261u;

    for (int i = 0; i < 16; i++)
        h = (h ^ gid[i]) * 16777619u;
    return h % (2 * NETEM_ADDRESSES);
}

uint32_t netem_plan_host(const struct netem_plan *p, const uint8_t gid[16])
{
    for (uint32_t h = hash_of(gid); p->by_gid[h]; h = (h + 1) % (2 * NETEM_ADDRESSES)) {
        const struct netem_address *a = &p->address[p->by_gid[h] - 1];

        if (memcmp(a->gid, gid, sizeof(a->gid)) == 0)
            return a->host;
    }
    return NETEM_NOWHERE;
}

/* host N: ADDRESS, … */
static int read_addresses(struct reader *r, struct str head, struct str list)
{
    struct netem_plan *p = r->plan;
    unsigned host = 0;
    int err = read_host(r, head, &host);

    if (err)
        return err;
    do {
        struct str word = str_trim(str_cut(&list, ','));
        struct netem_address *a = &p->address[p->num_addresses];

        if (p->num_addresses == NETEM_ADDRESSES)
            return ERROR(r, word, "too many addresses: at most %u", NETEM_ADDRESSES);
        if (!str_to_address(word, a->gid))
            return expected(r, word, "an IPv4 or IPv6 address");
        if (netem_plan_host(p, a->gid) != NETEM_NOWHERE)
            return ERROR(r, word, "the address is given twice");
        a->host = (uint8_t)host;
        uint32_t h = hash_of(a->gid);
        while (p->by_gid[h])
            h = (h + 1) % (2 * NETEM_ADDRESSES);
        p->by_gid[h] = (uint16_t)++p->num_addresses;
    } while (list.len);
    return 0;
}

/* --- paths ------------------------------------------------------------------------------------- */

static int set_path(struct reader *r, struct str word, uint16_t *path, uint16_t link)
{
    if (*path)
        return ERROR(r, word, "this link is described twice");
    *path = link;
    return 0;
}

/* The place of the link from one end to another. NULL, with an error. */
static uint16_t *path_of(struct reader *r, struct str from, struct str to)
{
    struct netem_plan *p = r->plan;
    unsigned a = find_rack(p, from), b = find_rack(p, to);

    if (a < p->num_racks && b < p->num_racks) {
        if (a != b)
            return &p->racks[a][b];
        ERROR(r, to, "a link goes from one rack to another");
        return NULL;
    }
    if (is_name(from) || is_name(to)) {
        expected(r, is_name(from) && a == p->num_racks ? from : to,
                 "two hosts, or two racks that earlier lines describe");
        return NULL;
    }
    if (read_end_host(r, from, &a) != 0 || read_end_host(r, to, &b) != 0)
        return NULL;
    if (a == b) {
        ERROR(r, to, "a link goes from one host to another");
        return NULL;
    }
    return &p->pair[a][b];
}

/* A -> B, A <-> B */
static int read_pair(struct reader *r, struct str head, uint16_t link)
{
    struct str from = str_word(&head), arrow = str_word(&head), to = str_word(&head);
    bool both = str_is(arrow, "<->");

    if (!both && !str_is(arrow, "->"))
        return expected(r, arrow.len ? arrow : from,
                        "rack NAME, host N, default, from N, to N, or two hosts or racks with -> or <-> between them");
    if (head.len)
        return expected(r, head, "the colon");
    uint16_t *path = path_of(r, from, to);
    int err = path ? set_path(r, from, path, link) : -EINVAL;
    if (err || !both)
        return err;
    path = path_of(r, to, from);
    return path ? set_path(r, to, path, link) : -EINVAL;
}

/* from N, from each, to N, to each */
static int read_end(struct reader *r, struct str head, uint16_t *each, uint16_t *hosts, uint16_t link)
{
    unsigned host = 0;

    if (str_is(head, "each"))
        return set_path(r, head, each, link);
    int err = read_end_host(r, head, &host);
    return err ? err : set_path(r, head, &hosts[host], link);
}

/* --- lines ------------------------------------------------------------------------------------- */

static int read_line(struct reader *r, struct str line)
{
    struct netem_plan *p = r->plan;
    bool colon = str_has(line, ':');
    struct str head = str_trim(str_cut(&line, ':')), rest = head, word = str_word(&rest);
    uint16_t link = 0;

    line = str_trim(line);
    if (!colon)
        return ERROR(r, word, "no colon: expected a line such as: 0 -> 1: rate 10Gbit, latency 20us");
    if (str_is(word, "rack"))
        return read_rack(r, rest, line);
    if (str_is(word, "host"))
        return read_addresses(r, rest, line);
    int err = read_link(r, line, &link);
    if (err)
        return err;
    if (str_is(word, "default") && !rest.len)
        return set_path(r, word, &p->all_pairs, link);
    if (str_is(word, "from"))
        return read_end(r, rest, &p->from_each, p->from, link);
    if (str_is(word, "to"))
        return read_end(r, rest, &p->to_each, p->to, link);
    return read_pair(r, head, link);
}

/* A link of a host that nothing connects to an address would never be passed. */
static int check_named(const struct reader *r)
{
    bool has_address[NETEM_HOSTS] = {false};

    for (unsigned i = 0; i < r->plan->num_addresses; i++)
        has_address[r->plan->address[i].host] = true;
    for (unsigned i = 0; i < NETEM_HOSTS; i++)
        if (r->named[i].len && !has_address[i])
            return ERROR(r, r->named[i],
                         "there is no host %u: pumice run --hosts N has the hosts 0 to N-1; for other daemons, add a "
                         "line such as host %u: 10.0.0.1",
                         i, i);
    return 0;
}

int netem_plan_parse(const char *text, struct netem_plan *plan, char why[NETEM_WHY_MAX])
{
    struct reader r = {.text = {.begin = text, .has_lines = true, .why = why, .why_len = NETEM_WHY_MAX}, .plan = plan};
    struct str rest = {text, strlen(text)};
    int err = 0;

    memset(plan, 0, sizeof(*plan));
    why[0] = 0;
    while (rest.len && !err) {
        struct str line = str_cut(&rest, '\n');

        line = str_trim(str_cut(&line, '#'));
        if (line.len)
            err = read_line(&r, line);
    }
    return err || !plan->num_addresses ? err : check_named(&r);
}

/* --- routes ------------------------------------------------------------------------------------ */

unsigned netem_plan_route(const struct netem_plan *p, uint32_t from, uint32_t to, struct netem_hop hops[NETEM_HOPS])
{
    const uint32_t racks_at = NETEM_HOSTS * NETEM_HOSTS, from_at = racks_at + NETEM_RACKS * NETEM_RACKS,
                   to_at = from_at + NETEM_HOSTS;
    unsigned n = 0;

    if (from >= NETEM_HOSTS || to >= NETEM_HOSTS || from == to)
        return 0;
    unsigned a = p->rack_of[from], b = p->rack_of[to];
    const struct {
        uint16_t link;
        uint32_t queue;
    } way[NETEM_HOPS] = {
        {p->from[from] ? p->from[from] : p->from_each, from_at + from},
        {a && b ? p->racks[a - 1][b - 1] : 0, a && b ? racks_at + (a - 1) * NETEM_RACKS + b - 1 : 0},
        {p->pair[from][to] ? p->pair[from][to] : p->all_pairs, from * NETEM_HOSTS + to},
        {p->to[to] ? p->to[to] : p->to_each, to_at + to},
    };
    for (unsigned i = 0; i < NETEM_HOPS; i++)
        if (way[i].link)
            hops[n++] = (struct netem_hop){&p->link[way[i].link - 1], way[i].queue};
    return n;
}

uint64_t netem_plan_first_mark(const struct netem_plan *plan)
{
    uint64_t first = 0;

    for (unsigned i = 0; i < plan->num_links; i++) {
        uint64_t bytes = plan->link[i].mark_bytes;

        if (bytes && (!first || bytes < first))
            first = bytes;
    }
    return first;
}
