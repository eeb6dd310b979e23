// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fault/fault_class.h"
#include "daemon/fault/fault_text.h"

#define REORDER_NS 100000 /* default of reorder-by */
#define QPN_MAX 0xffffffu

/* --- values ------------------------------------------------------------------------------------ */

/* They set one value of a rule. member: the field that the table of names says. False: the value is invalid. */

static bool set_percent(struct fault_rule *r, void *member, struct str value)
{
    (void)r;
    return str_to_percent(value, member);
}

static bool set_ack_loss(struct fault_rule *r, void *member, struct str value)
{
    r->has_ack_loss = true;
    return str_to_percent(value, member);
}

static bool set_rnr(struct fault_rule *r, void *member, struct str value)
{
    r->effect = FAULT_ON_RECEIVING;
    return str_to_percent(value, member);
}

static bool set_delay(struct fault_rule *r, void *member, struct str value)
{
    (void)r;
    return str_to_time(value, FAULT_DELAY_MAX_NS, member);
}

static bool set_time(struct fault_rule *r, void *member, struct str value)
{
    (void)r;
    return str_to_time(value, FAULT_TIME_MAX_NS, member);
}

/* 0 would mean that there is no such limit. */
static bool set_span(struct fault_rule *r, void *member, struct str value)
{
    return set_time(r, member, value) && *(uint64_t *)member != 0;
}

static bool set_count(struct fault_rule *r, void *member, struct str value)
{
    uint64_t n;

    (void)r;
    if (!str_to_number(value, FAULT_COUNT_MAX, &n) || n == 0)
        return false;
    *(uint32_t *)member = (uint32_t)n;
    return true;
}

static bool set_mask(struct fault_rule *r, void *member, struct str value)
{
    (void)r;
    return str_to_number(value, UINT64_MAX, member);
}

static bool set_peer(struct fault_rule *r, void *member, struct str value)
{
    r->has_peer = true;
    return str_to_address(value, member);
}

static bool set_qpn(struct fault_rule *r, void *member, struct str value)
{
    uint64_t n;

    if (!str_to_number(value, QPN_MAX, &n))
        return false;
    *(uint32_t *)member = (uint32_t)n;
    r->has_qpn |= member == &r->qpn;
    r->has_src_qpn |= member == &r->src_qpn;
    return true;
}

/* CLASS or CLASS#N */
static bool set_class(struct fault_rule *r, void *member, struct str value)
{
    bool has_number = str_has(value, '#');
    struct str class = str_cut(&value, '#');
    uint64_t n = 0;

    (void)member;
    if (has_number && (!str_to_number(value, FAULT_COUNT_MAX, &n) || n == 0))
        return false;
    if (has_number) {
        r->after = (uint32_t)n - 1;
        r->count = 1;
    }
    return fault_class_parse(class, r);
}

static bool set_drop(struct fault_rule *r, void *member, struct str value)
{
    r->loss = FAULT_ALWAYS;
    return set_class(r, member, value);
}

static bool set_link(struct fault_rule *r, void *member, struct str value)
{
    r->effect = FAULT_ON_LINK;
    *(bool *)member = str_is(value, "up");
    return str_is(value, "up") || str_is(value, "down");
}

static bool set_daemon(struct fault_rule *r, void *member, struct str value)
{
    (void)member;
    r->effect = FAULT_ON_DAEMON;
    return str_is(value, "killed");
}

/* --- names ------------------------------------------------------------------------------------- */

#define A_PERCENTAGE "a percentage from 0% to 100%, such as 1% or 0.05%"
#define A_DELAY "a time up to 10s with its unit (ns, us, ms, s), such as 50us"
#define A_TIME "a time with its unit (ns, us, ms, s), such as 1.5s, at most 1000000s"
#define A_COUNT "a number from 1 to 1000000000"
#define A_QPN "a QP number, such as 17 or 0x11"
#define NAMES                                                                                                          \
    "loss, ack-loss, dup, corrupt, truncate, reorder, reorder-by, delay, jitter, ce, drop, mask, rnr, link, daemon; "  \
    "limits: peer, qpn, src-qpn, only, message, from, until, after, for, count"

/* Names of one kind may stand in one rule together, and with limits. */
enum kind { LIMIT, PACKETS, RNR, LINK, DAEMON };

struct name {
    const char *name;
    enum kind kind;
    bool (*set)(struct fault_rule *r, void *member, struct str value);
    size_t member;
    const char *wanted;
};
#define MEMBER(m) offsetof(struct fault_rule, m)

static const struct name names[] = {
    {"loss", PACKETS, set_percent, MEMBER(loss), A_PERCENTAGE},
    {"ack-loss", PACKETS, set_ack_loss, MEMBER(ack_loss), A_PERCENTAGE},
    {"dup", PACKETS, set_percent, MEMBER(dup), A_PERCENTAGE},
    {"corrupt", PACKETS, set_percent, MEMBER(corrupt), A_PERCENTAGE},
    {"truncate", PACKETS, set_percent, MEMBER(truncate), A_PERCENTAGE},
    {"reorder", PACKETS, set_percent, MEMBER(reorder), A_PERCENTAGE},
    {"reorder-by", PACKETS, set_delay, MEMBER(reorder_ns), A_DELAY},
    {"delay", PACKETS, set_delay, MEMBER(delay_ns), A_DELAY},
    {"jitter", PACKETS, set_delay, MEMBER(jitter_ns), A_DELAY},
    {"ce", PACKETS, set_percent, MEMBER(ce), A_PERCENTAGE},
    {"drop", PACKETS, set_drop, 0, FAULT_A_CLASS},
    {"mask", PACKETS, set_mask, MEMBER(mask), "64 bits, such as 0x8000000000000001"},
    {"rnr", RNR, set_rnr, MEMBER(rnr), A_PERCENTAGE},
    {"link", LINK, set_link, MEMBER(link_up), "down or up"},
    {"daemon", DAEMON, set_daemon, 0, "killed"},
    {"peer", LIMIT, set_peer, MEMBER(peer), "an IPv4 or IPv6 address, such as 127.0.0.2"},
    {"qpn", LIMIT, set_qpn, MEMBER(qpn), A_QPN},
    {"src-qpn", LIMIT, set_qpn, MEMBER(src_qpn), A_QPN},
    {"only", LIMIT, set_class, 0, FAULT_A_CLASS},
    {"message", LIMIT, set_count, MEMBER(nth_message), A_COUNT},
    {"from", LIMIT, set_time, MEMBER(from_ns), A_TIME},
    {"until", LIMIT, set_span, MEMBER(until_ns), A_TIME},
    {"after", LIMIT, set_count, MEMBER(after), A_COUNT},
    {"for", LIMIT, set_span, MEMBER(for_ns), A_TIME},
    {"count", LIMIT, set_count, MEMBER(count), A_COUNT},
};

static const struct name *find_name(struct str s)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_is(s, names[i].name))
            return &names[i];
    return NULL;
}

/* --- rules ------------------------------------------------------------------------------------- */

/* Does the same name occur in the rule's text before `name`? If `name` is not a part of the text: anywhere in it? */
static bool seen_before(struct str rule, struct str name)
{
    while (rule.len) {
        struct str item = str_cut(&rule, ',');
        struct str earlier = str_trim(str_cut(&item, '='));

        if (earlier.p == name.p)
            return false;
        if (str_equal(earlier, name))
            return true;
    }
    return false;
}

static bool has_name(struct str rule, const char *name)
{
    return seen_before(rule, (struct str){name, strlen(name)});
}

/* drop sets what these set. */
static bool contradicts_drop(struct str rule)
{
    return has_name(rule, "drop") && (has_name(rule, "only") || has_name(rule, "loss") || has_name(rule, "ack-loss"));
}

static bool has_number(struct str rule)
{
    return str_has(rule, '#');
}

static int parse_item(const struct fault_text *t, struct str rule, struct str item, struct fault_rule *r,
                      enum kind *kind)
{
    bool has_value = str_has(item, '=');
    struct str value = item;
    struct str text = str_trim(str_cut(&value, '='));
    const struct name *name = find_name(text);

    if (!has_value)
        return fault_text_error(t, item.p, "'%.*s' is not NAME=VALUE, for example: loss=1%%,reorder=5%%", (int)item.len,
                                item.p);
    value = str_trim(value);
    if (seen_before(rule, text))
        return fault_text_error(t, text.p, "'%.*s' is given twice in one rule", (int)text.len, text.p);
    if (!name)
        return fault_text_error(t, text.p, "unknown fault '%.*s': expected one of " NAMES, (int)text.len, text.p);
    if (!name->set(r, (char *)r + name->member, value))
        return fault_text_error(t, value.p, "%s: invalid value \"%.*s\": expected %s", name->name, (int)value.len,
                                value.p, name->wanted);
    if (name->kind != LIMIT && *kind != LIMIT && *kind != name->kind)
        return fault_text_error(t, text.p,
                                "rnr, link and daemon need a rule of their own: put a semicolon instead of the comma");
    if (name->kind != LIMIT)
        *kind = name->kind;
    return 0;
}

void fault_rule_init(struct fault_rule *r)
{
    *r = (struct fault_rule){.reorder_ns = REORDER_NS, .until_ns = FAULT_NO_END};
}

int fault_rule_parse(const struct fault_text *t, struct str rule, struct fault_rule *r)
{
    struct str rest = rule;
    enum kind kind = LIMIT;

    do {
        if (parse_item(t, rule, str_trim(str_cut(&rest, ',')), r, &kind) != 0)
            return -EINVAL;
    } while (rest.len);
    if (kind == LIMIT)
        return fault_text_error(t, rule.p,
                                "the rule names packets, but no fault: add one, such as loss=100%%; with loss=0%% they "
                                "pass, whatever later rules say");
    if (contradicts_drop(rule))
        return fault_text_error(
            t, rule.p, "drop=CLASS means only=CLASS,loss=100%%: give no only, loss or ack-loss with it in one rule");
    if (has_number(rule) && (has_name(rule, "after") || has_name(rule, "count")))
        return fault_text_error(t, rule.p,
                                "CLASS#N means after=N-1,count=1: give no after or count with it in one rule");
    return 0;
}

int fault_rule_finish(const struct fault_text *t, const char *at, struct fault_rule *r)
{
    bool acts_once = r->effect == FAULT_ON_LINK || r->effect == FAULT_ON_DAEMON;

    if (r->nth_message && (r->after || r->count || r->for_ns))
        return fault_text_error(t, at, "message=N names the packets: give no #N, after, for or count with it");
    if (r->for_ns && r->until_ns != FAULT_NO_END)
        return fault_text_error(t, at, "give either for or until in one rule");
    if (r->until_ns <= r->from_ns)
        return fault_text_error(t, at, "until must be later than from");
    if (acts_once && r->count > 1)
        return fault_text_error(t, at, "link and daemon act once: give no count with them");
    if (r->effect == FAULT_ON_RECEIVING && r->has_src_qpn)
        return fault_text_error(t, at, "rnr is for packets that arrive, which do not name their QP: give peer or qpn");
    /* Without packets before it, the time `for` begins at `from`. */
    bool waits = r->after || (acts_once && (r->count || r->has_peer || r->has_qpn || r->has_src_qpn || r->only));
    if (r->for_ns && !waits) {
        r->until_ns = r->from_ns + r->for_ns;
        r->for_ns = 0;
    }
    return 0;
}

int fault_parse(const char *text, struct fault_spec *spec, char *why, size_t why_len)
{
    const struct fault_text t = {.begin = text, .why = why, .why_len = why_len};
    struct str rest = str_trim((struct str){text, strlen(text)});
    int err = 0;

    if (why_len)
        why[0] = 0;
    spec->n = 0;
    while (rest.len && !err) {
        struct str rule = str_trim(str_cut(&rest, ';'));

        if (rule.len == 0)
            continue;
        if (spec->n == FAULT_RULES_MAX) {
            err = fault_text_error(&t, rule.p, "too many rules: at most %d are allowed", FAULT_RULES_MAX);
            break;
        }
        struct fault_rule *r = &spec->rule[spec->n++];
        fault_rule_init(r);
        err = fault_rule_parse(&t, rule, r);
        if (!err)
            err = fault_rule_finish(&t, rule.p, r);
    }
    if (err)
        spec->n = 0;
    return err;
}
