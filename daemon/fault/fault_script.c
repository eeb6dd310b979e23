// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault_script.h"

#include <errno.h>
#include <string.h>

#include "daemon/fault/fault_class.h"
#include "daemon/fault/fault_text.h"

#define HOST_MAX 65535u
#define QPN_MAX 0xffffffu

#define A_TIME "a time with its unit, such as 500ms or 2s"
#define A_NUMBER "a number from 1 to 1000000000"

/* One line, while it is read. */
struct line {
    const struct fault_text *text;
    struct str rest; /* words that were not read yet */
    struct fault_rule rule;
    bool has_limits; /* it names packets */
    bool has_host;
    uint64_t host;
    unsigned hosts; /* of the lab; 0: not known */
};

#define ERROR(l, word, ...) fault_text_error((l)->text, (word).p, __VA_ARGS__)

static int expected(const struct line *l, struct str word, const char *what)
{
    if (word.len == 0)
        return ERROR(l, word, "the line ends here: expected %s", what);
    return ERROR(l, word, "'%.*s': expected %s", (int)word.len, word.p, what);
}

/* --- values ------------------------------------------------------------------------------------ */

/* They read the next word. */

static int read_time(struct line *l, uint64_t *ns)
{
    struct str word = str_word(&l->rest);

    return str_to_time(word, FAULT_TIME_MAX_NS, ns) ? 0 : expected(l, word, A_TIME);
}

static int read_span(struct line *l, uint64_t *ns)
{
    struct str word = str_word(&l->rest);

    return str_to_time(word, FAULT_TIME_MAX_NS, ns) && *ns ? 0 : expected(l, word, A_TIME);
}

static int read_number(struct line *l, uint32_t *n)
{
    struct str word = str_word(&l->rest);
    uint64_t v;

    if (!str_to_number(word, FAULT_COUNT_MAX, &v) || v == 0)
        return expected(l, word, A_NUMBER);
    *n = (uint32_t)v;
    return 0;
}

static int read_word(struct line *l, const char *wanted)
{
    struct str word = str_word(&l->rest);

    return str_is(word, wanted) ? 0 : expected(l, word, wanted);
}

/* Is this the next word? Then reads it. */
static bool next_is(struct line *l, const char *word)
{
    struct str rest = l->rest;

    if (!str_is(str_word(&rest), word))
        return false;
    l->rest = rest;
    return true;
}

static int read_qpn(struct line *l, uint32_t *qpn, bool *has)
{
    struct str word = str_word(&l->rest);
    uint64_t v;

    if (!str_to_number(word, QPN_MAX, &v))
        return expected(l, word, "a QP number, such as 17 or 0x11");
    if (*has)
        return ERROR(l, word, "the QP is given twice");
    *has = true;
    *qpn = (uint32_t)v;
    return 0;
}

/* --- limits ------------------------------------------------------------------------------------ */

static int read_class(struct line *l)
{
    struct str word = str_word(&l->rest);

    if (l->rule.only != FAULT_ANY)
        return ERROR(l, word, "the class is given twice");
    if (!fault_class_parse(word, &l->rule))
        return expected(l, word, "qp N, or a class of packets, such as send, read-request, nak, tm-fin or REP");
    return 0;
}

static int read_peer(struct line *l)
{
    struct str word = str_word(&l->rest);

    if (l->rule.has_peer)
        return ERROR(l, word, "the address is given twice");
    l->rule.has_peer = true;
    return str_to_address(word, l->rule.peer) ? 0 : expected(l, word, "qp N, or an IPv4 or IPv6 address");
}

/* Reads { LIMIT }. allowed: else the line has limits before its colon. */
static int read_limits(struct line *l, bool allowed)
{
    int err = 0;

    while (!err) {
        struct str at = l->rest;
        bool of = next_is(l, "of");

        if (!of && !next_is(l, "to"))
            return 0;
        if (!allowed)
            return ERROR(l, at, "the packets are already named before the colon");
        l->has_limits = true;
        if (next_is(l, "qp"))
            err =
                of ? read_qpn(l, &l->rule.src_qpn, &l->rule.has_src_qpn) : read_qpn(l, &l->rule.qpn, &l->rule.has_qpn);
        else
            err = of ? read_class(l) : read_peer(l);
    }
    return err;
}

/* --- before the colon -------------------------------------------------------------------------- */

static int read_when(struct line *l)
{
    struct str word = str_word(&l->rest);
    int err;

    if (str_is(word, "at"))
        return read_time(l, &l->rule.from_ns);
    if (str_is(word, "from")) {
        err = read_time(l, &l->rule.from_ns);
        if (!err)
            err = read_word(l, "until");
        return err ? err : read_span(l, &l->rule.until_ns);
    }
    if (str_is(word, "after")) {
        err = read_number(l, &l->rule.after);
        if (!err && !next_is(l, "packet"))
            err = read_word(l, "packets");
        return err ? err : read_limits(l, true);
    }
    if (str_is(word, "message")) {
        err = read_number(l, &l->rule.nth_message);
        return err ? err : read_limits(l, true);
    }
    return expected(l, word, "at T, from T until T, after N packets, or message N");
}

static int read_host(struct line *l)
{
    struct str word;

    if (!next_is(l, "host"))
        return 0;
    word = str_word(&l->rest);
    l->has_host = true;
    if (!str_to_number(word, HOST_MAX, &l->host))
        return expected(l, word, "the number of a host");
    if (l->hosts && l->host >= l->hosts)
        return ERROR(l, word, "there is no host %u: the lab has %u, and the first one is host 0", (unsigned)l->host,
                     l->hosts);
    return 0;
}

/* --- behind the colon -------------------------------------------------------------------------- */

static const struct verb {
    const char *name;
    enum fault_effect effect;
    size_t member; /* the probability that becomes 100 % */
} verbs[] = {
    {"drop", FAULT_ON_SENDING, offsetof(struct fault_rule, loss)},
    {"duplicate", FAULT_ON_SENDING, offsetof(struct fault_rule, dup)},
    {"corrupt", FAULT_ON_SENDING, offsetof(struct fault_rule, corrupt)},
    {"truncate", FAULT_ON_SENDING, offsetof(struct fault_rule, truncate)},
    {"mark", FAULT_ON_SENDING, offsetof(struct fault_rule, ce)},
    {"refuse", FAULT_ON_RECEIVING, offsetof(struct fault_rule, rnr)},
};

/* [N] { LIMIT } */
static int read_packets(struct line *l)
{
    struct str rest = l->rest;
    struct str word = str_word(&rest);

    if (word.len && word.p[0] >= '0' && word.p[0] <= '9') {
        int err = read_number(l, &l->rule.count);

        if (err)
            return err;
    }
    return read_limits(l, !l->has_limits);
}

static int read_delay(struct line *l)
{
    int err = read_packets(l);
    struct str word;

    if (!err)
        err = read_word(l, "by");
    if (err)
        return err;
    word = str_word(&l->rest);
    return str_to_time(word, FAULT_DELAY_MAX_NS, &l->rule.delay_ns)
               ? 0
               : expected(l, word, "a time up to 10s, such as 50us");
}

static int read_link(struct line *l)
{
    l->rule.effect = FAULT_ON_LINK;
    if (next_is(l, "down"))
        return 0;
    l->rule.link_up = true;
    return next_is(l, "up") ? 0 : expected(l, str_word(&l->rest), "down or up");
}

/* Parses a rule as in --fault. Limits of time and of packets are not allowed in it, because they stand before the colon. */
static int read_rule(struct line *l, struct str word)
{
    const struct fault_rule when = l->rule;
    struct fault_rule r;

    fault_rule_init(&r);
    if (fault_rule_parse(l->text, word, &r) != 0)
        return -EINVAL;
    if (r.from_ns || r.until_ns != FAULT_NO_END || r.for_ns || r.after || r.count || r.nth_message)
        return ERROR(l, word, "in a script, times and numbers stand before the colon, or as in: drop 3 for 1s");
    if (l->has_limits && (r.only != FAULT_ANY || r.has_peer || r.has_qpn || r.has_src_qpn))
        return ERROR(l, word, "the packets are already named before the colon");
    if (l->has_limits) {
        r.only = when.only;
        r.tm = when.tm;
        r.message = when.message;
        memcpy(r.opcodes, when.opcodes, sizeof(r.opcodes));
        memcpy(r.peer, when.peer, sizeof(r.peer));
        r.has_peer = when.has_peer;
        r.qpn = when.qpn;
        r.has_qpn = when.has_qpn;
        r.src_qpn = when.src_qpn;
        r.has_src_qpn = when.has_src_qpn;
    }
    r.from_ns = when.from_ns;
    r.until_ns = when.until_ns;
    r.after = when.after;
    r.nth_message = when.nth_message;
    l->rule = r;
    return 0;
}

static int read_verb(struct line *l)
{
    struct str word = str_word(&l->rest);

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (!str_is(word, verbs[i].name))
            continue;
        l->rule.effect = (uint8_t)verbs[i].effect;
        *(uint64_t *)(void *)((char *)&l->rule + verbs[i].member) = FAULT_ALWAYS;
        return read_packets(l);
    }
    if (str_is(word, "delay"))
        return read_delay(l);
    if (str_is(word, "link"))
        return read_link(l);
    if (str_is(word, "nothing"))
        return 0;
    if (str_is(word, "kill")) {
        l->rule.effect = FAULT_ON_DAEMON;
        return 0;
    }
    if (str_has(word, '='))
        return read_rule(l, word);
    return expected(l, word,
                    "drop, duplicate, corrupt, truncate, mark, delay, refuse, link, kill, nothing, or a rule such as "
                    "loss=5%");
}

static int read_what(struct line *l)
{
    int err = read_verb(l);

    if (!err && next_is(l, "for"))
        err = read_span(l, &l->rule.for_ns);
    if (!err && l->rest.len)
        err = expected(l, str_word(&l->rest), "the end of the line, or: for T");
    return err;
}

/* --- lines ------------------------------------------------------------------------------------- */

/* Cuts off the part before the colon that ends it: a blank follows, unlike the colons of IPv6 addresses. */
static bool cut_at_colon(struct str *line, struct str *head)
{
    for (size_t i = 0; i < line->len; i++) {
        if (line->p[i] != ':' || (i + 1 < line->len && line->p[i + 1] != ' ' && line->p[i + 1] != '\t'))
            continue;
        *head = (struct str){line->p, i};
        *line = str_trim((struct str){line->p + i + 1, line->len - i - 1});
        return true;
    }
    return false;
}

static int read_line(struct line *l, struct str line)
{
    struct str whole = line, head;
    int err;

    fault_rule_init(&l->rule);
    if (!cut_at_colon(&line, &head))
        return fault_text_error(l->text, whole.p,
                                "no colon with a blank behind it: expected WHEN: WHAT, such as: at 2s: drop 3");
    l->rest = str_trim(head);
    err = read_when(l);
    if (!err)
        err = read_host(l);
    if (!err && l->rest.len)
        err = expected(l, str_word(&l->rest), "host N, or the colon");
    l->rest = line;
    if (!err)
        err = read_what(l);
    return err ? err : fault_rule_finish(l->text, whole.p, &l->rule);
}

static struct str without_comment(struct str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.p[i] == '#' && (i == 0 || line.p[i - 1] == ' ' || line.p[i - 1] == '\t'))
            line.len = i;
    return str_trim(line);
}

/* Puts the rule first. */
static bool put_rule(struct fault_spec *spec, const struct fault_rule *r)
{
    if (spec->n == FAULT_RULES_MAX)
        return false;
    memmove(&spec->rule[1], &spec->rule[0], spec->n * sizeof(spec->rule[0]));
    spec->rule[0] = *r;
    spec->n++;
    return true;
}

int fault_script_parse(const char *script, unsigned host, unsigned hosts, struct fault_spec *spec, char *why,
                       size_t why_len)
{
    const struct fault_text text = {.begin = script, .has_lines = true, .why = why, .why_len = why_len};
    struct str rest = {script, strlen(script)};
    int err = 0;

    if (why_len)
        why[0] = 0;
    while (rest.len && !err) {
        struct str words = without_comment(str_cut(&rest, '\n'));
        struct line l = {.text = &text, .hosts = hosts};

        if (words.len == 0)
            continue;
        err = read_line(&l, words);
        if (!err && (!l.has_host || l.host == host) && !put_rule(spec, &l.rule))
            err = fault_text_error(&text, words.p, "too many lines for one host: at most %d, with the rules of --fault",
                                   FAULT_RULES_MAX);
    }
    if (err)
        spec->n = 0;
    return err;
}
