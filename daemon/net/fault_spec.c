// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/fault_spec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "wire/cm_msg.h"
#include "wire/gid.h"

#define REORDER_NS 100000 /* default of reorder-by */
#define QPN_MAX 0xffffffu
#define NTH_MAX 1000000000u

/* A part of the text, not NUL-terminated. */
struct str {
    const char *p;
    size_t len;
};

/* Cuts off the part before the first `sep` (or everything), and moves *s behind it. */
static struct str cut(struct str *s, char sep)
{
    const char *at = memchr(s->p, sep, s->len);
    struct str head = {s->p, at ? (size_t)(at - s->p) : s->len};
    size_t gone = head.len + (at ? 1 : 0);

    s->p += gone;
    s->len -= gone;
    return head;
}

static struct str trim(struct str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.len--;
    }
    while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static bool is(struct str s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}

/* Reads a decimal number at the start of s, in billionths, and moves *s behind it. At most nine digits may precede
 * the point. Digits after the ninth decimal place are ignored. */
static bool take_decimal(struct str *s, uint64_t *billionths)
{
    uint64_t unit = 1000000000, whole = 0, fraction = 0;
    unsigned digits = 0, point = 0;

    for (; s->len; s->p++, s->len--) {
        char c = s->p[0];

        if (c == '.' && !point) {
            point = 1;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        if (!point && ++digits > 9)
            return false;
        if (!point)
            whole = whole * 10 + (uint64_t)(c - '0');
        else
            fraction += (uint64_t)(c - '0') * (unit /= 10);
        point += point != 0;
    }
    *billionths = whole * 1000000000 + fraction;
    return digits > 0 || point > 1;
}

static bool to_percent(struct str s, uint64_t *probability)
{
    uint64_t n;

    if (!take_decimal(&s, &n) || !is(s, "%") || n > 100 * 1000000000ull)
        return false;
    /* n / 10^11 * 2^32, without overflow: 2^32 / 10^11 = 2^21 / 5^11. */
    *probability = (n << 21) / 48828125;
    if (n && !*probability)
        *probability = 1;
    return true;
}

static bool to_time(struct str s, uint64_t *ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    uint64_t n;

    if (!take_decimal(&s, &n))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!is(s, units[i].name))
            continue;
        if (n / 1000000000 > FAULT_DELAY_MAX_NS / units[i].ns)
            return false;
        *ns = n / 1000000000 * units[i].ns + n % 1000000000 * units[i].ns / 1000000000;
        return *ns <= FAULT_DELAY_MAX_NS;
    }
    return false;
}

static bool to_number(struct str s, uint64_t max, uint64_t *v)
{
    unsigned base = 10;
    uint64_t n = 0;

    if (s.len > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X')) {
        base = 16;
        s.p += 2;
        s.len -= 2;
    }
    if (s.len == 0)
        return false;
    for (; s.len; s.p++, s.len--) {
        char c = (char)(s.p[0] | 0x20);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 99;

        if (digit >= base || n > (max - digit) / base)
            return false;
        n = n * base + digit;
    }
    *v = n;
    return true;
}

static bool to_address(struct str s, uint8_t gid[16])
{
    char text[INET6_ADDRSTRLEN];

    if (s.len >= sizeof(text))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = 0;
    if (inet_pton(AF_INET6, text, gid) == 1)
        return true;
    if (inet_pton(AF_INET, text, gid + GID_V4_AT) != 1)
        return false;
    gid_from_v4(gid, gid + GID_V4_AT);
    return true;
}

static bool is_any_case(struct str s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.p, text, s.len) == 0;
}

static bool to_message(struct str s, struct fault_rule *r)
{
    for (uint16_t a = CM_REQ; a <= CM_APR; a++) {
        if (is_any_case(s, cm_attribute_name(a))) {
            r->only = FAULT_CM;
            r->message = a;
            return true;
        }
    }
    return false;
}

static bool to_packets(struct str s, struct fault_rule *r)
{
    static const struct {
        const char *name;
        enum fault_class class;
    } classes[] = {
        {"request", FAULT_REQUEST}, {"response", FAULT_RESPONSE}, {"ack", FAULT_ACK},       {"send", FAULT_SEND},
        {"write", FAULT_WRITE},     {"read", FAULT_READ},         {"atomic", FAULT_ATOMIC}, {"cm", FAULT_CM},
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (is(s, classes[i].name)) {
            r->only = (uint8_t)classes[i].class;
            return true;
        }
    }
    return false;
}

/* CLASS or CLASS#N */
static bool to_class(struct str s, struct fault_rule *r)
{
    bool has_number = s.len && memchr(s.p, '#', s.len);
    struct str class = cut(&s, '#');
    uint64_t n = 0;

    if (has_number && (!to_number(s, NTH_MAX, &n) || n == 0))
        return false;
    r->nth = (uint32_t)n;
    return to_packets(class, r) || to_message(class, r);
}

#define A_PERCENTAGE "a percentage from 0% to 100%, such as 1% or 0.05%"
#define A_TIME "a time up to 10s with its unit (ns, us, ms, s), such as 50us"
#define A_CLASS                                                                                                        \
    "one of request, response, ack, send, write, read, atomic, cm, REQ, REP, RTU, REJ, MRA, DREQ, DREP, SIDR_REQ, "    \
    "SIDR_REP, LAP, APR; or the Nth of them, such as REP#1"
#define NAMES                                                                                                          \
    "loss, ack-loss, dup, corrupt, reorder, reorder-by, delay, jitter, ce, drop, mask; to limit the rule: peer, qpn, " \
    "only"

/* Sets one name of a rule. Returns NULL, or a description of the values that the name takes. *known: the name
 * exists. */
static const char *set_value(struct fault_rule *r, struct str name, struct str value, bool *known)
{
    uint64_t n;

    *known = true;
    if (is(name, "loss"))
        return to_percent(value, &r->loss) ? NULL : A_PERCENTAGE;
    if (is(name, "ack-loss")) {
        r->has_ack_loss = true;
        return to_percent(value, &r->ack_loss) ? NULL : A_PERCENTAGE;
    }
    if (is(name, "dup"))
        return to_percent(value, &r->dup) ? NULL : A_PERCENTAGE;
    if (is(name, "corrupt"))
        return to_percent(value, &r->corrupt) ? NULL : A_PERCENTAGE;
    if (is(name, "reorder"))
        return to_percent(value, &r->reorder) ? NULL : A_PERCENTAGE;
    if (is(name, "reorder-by"))
        return to_time(value, &r->reorder_ns) ? NULL : A_TIME;
    if (is(name, "delay"))
        return to_time(value, &r->delay_ns) ? NULL : A_TIME;
    if (is(name, "jitter"))
        return to_time(value, &r->jitter_ns) ? NULL : A_TIME;
    if (is(name, "ce"))
        return to_percent(value, &r->ce) ? NULL : A_PERCENTAGE;
    if (is(name, "mask"))
        return to_number(value, UINT64_MAX, &r->mask) ? NULL : "64 bits, such as 0x8000000000000001";
    if (is(name, "peer")) {
        r->has_peer = true;
        return to_address(value, r->peer) ? NULL : "an IPv4 or IPv6 address, such as 127.0.0.2";
    }
    if (is(name, "qpn")) {
        if (!to_number(value, QPN_MAX, &n))
            return "a QP number, such as 17 or 0x11";
        r->has_qpn = true;
        r->qpn = (uint32_t)n;
        return NULL;
    }
    if (is(name, "only"))
        return to_class(value, r) ? NULL : A_CLASS;
    if (is(name, "drop")) {
        r->loss = FAULT_ALWAYS;
        return to_class(value, r) ? NULL : A_CLASS;
    }
    *known = false;
    return NULL;
}

/* Does the same name occur in the rule's text before `name`? If `name` is not a part of the text: anywhere in it? */
static bool seen_before(struct str rule, struct str name)
{
    while (rule.len) {
        struct str item = cut(&rule, ',');
        struct str earlier = trim(cut(&item, '='));

        if (earlier.p == name.p)
            return false;
        if (earlier.len == name.len && memcmp(earlier.p, name.p, name.len) == 0)
            return true;
    }
    return false;
}

/* drop sets what these set. */
static bool contradicts_itself(struct str rule)
{
    static const char *const others[] = {"only", "loss", "ack-loss"};

    if (!seen_before(rule, (struct str){"drop", 4}))
        return false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (seen_before(rule, (struct str){others[i], strlen(others[i])}))
            return true;
    return false;
}

static int parse_rule(struct str text, struct fault_rule *r, char *why, size_t why_len)
{
    struct str rest = text;

    *r = (struct fault_rule){.reorder_ns = REORDER_NS};
    do {
        struct str item = trim(cut(&rest, ','));
        bool has_value = item.len && memchr(item.p, '=', item.len);
        struct str value = item;
        struct str name = trim(cut(&value, '='));
        const char *wanted;
        bool known;

        if (!has_value) {
            snprintf(why, why_len, "'%.*s' is not NAME=VALUE, for example: loss=1%%,reorder=5%%", (int)item.len,
                     item.p);
            return -EINVAL;
        }
        value = trim(value);
        if (seen_before(text, name)) {
            snprintf(why, why_len, "'%.*s' is given twice in one rule", (int)name.len, name.p);
            return -EINVAL;
        }
        wanted = set_value(r, name, value, &known);
        if (!known) {
            snprintf(why, why_len, "unknown fault '%.*s': expected one of " NAMES, (int)name.len, name.p);
            return -EINVAL;
        }
        if (wanted) {
            snprintf(why, why_len, "%.*s: invalid value \"%.*s\": expected %s", (int)name.len, name.p, (int)value.len,
                     value.p, wanted);
            return -EINVAL;
        }
    } while (rest.len);
    if (contradicts_itself(text)) {
        snprintf(why, why_len,
                 "drop=CLASS means only=CLASS,loss=100%%: give no only, loss or ack-loss with it in one rule");
        return -EINVAL;
    }
    return 0;
}

int fault_parse(const char *text, struct fault_spec *spec, char *why, size_t why_len)
{
    struct str rest = trim((struct str){text, strlen(text)});

    if (why_len)
        why[0] = 0;
    spec->n = 0;
    while (rest.len) {
        struct str rule = trim(cut(&rest, ';'));
        int err;

        if (rule.len == 0)
            continue;
        if (spec->n == FAULT_RULES_MAX) {
            snprintf(why, why_len, "too many rules: at most %d are allowed", FAULT_RULES_MAX);
            err = -EINVAL;
        } else {
            err = parse_rule(rule, &spec->rule[spec->n], why, why_len);
        }
        if (err) {
            spec->n = 0;
            return err;
        }
        spec->n++;
    }
    return 0;
}
