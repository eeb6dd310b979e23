// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "wire/gid.h"

/* --- errors ------------------------------------------------------------------------------------ */

int fault_text_error(const struct fault_text *t, const char *at, const char *format, ...)
{
    unsigned line = 1, column = 1;
    va_list args;
    int n;

    for (const char *p = t->begin; p < at; p++) {
        bool begins = ((unsigned char)*p & 0xc0) != 0x80; /* not in the middle of a UTF-8 character */

        column = *p == '\n' ? 1 : column + begins;
        line += *p == '\n';
    }
    if (t->has_lines)
        n = snprintf(t->why, t->why_len, "line %u, column %u: ", line, column);
    else
        n = snprintf(t->why, t->why_len, "column %u: ", column);
    va_start(args, format);
    if (n > 0 && (size_t)n < t->why_len)
        vsnprintf(t->why + n, t->why_len - (size_t)n, format, args);
    va_end(args);
    return -EINVAL;
}

/* --- parts ------------------------------------------------------------------------------------- */

struct str str_cut(struct str *s, char sep)
{
    const char *at = s->len ? memchr(s->p, sep, s->len) : NULL;
    struct str head = {s->p, at ? (size_t)(at - s->p) : s->len};
    size_t gone = head.len + (at ? 1 : 0);

    s->p += gone;
    s->len -= gone;
    return head;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

struct str str_trim(struct str s)
{
    while (s.len && is_blank(s.p[0])) {
        s.p++;
        s.len--;
    }
    while (s.len && is_blank(s.p[s.len - 1]))
        s.len--;
    return s;
}

struct str str_word(struct str *s)
{
    struct str word;

    *s = str_trim(*s);
    word = (struct str){s->p, 0};
    while (word.len < s->len && !is_blank(s->p[word.len]))
        word.len++;
    s->p += word.len;
    s->len -= word.len;
    *s = str_trim(*s);
    return word;
}

bool str_is(struct str s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}

bool str_is_any_case(struct str s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.p, text, s.len) == 0;
}

bool str_equal(struct str a, struct str b)
{
    return a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
}

/* --- numbers ----------------------------------------------------------------------------------- */

#define BILLION 1000000000ull

__extension__ typedef unsigned __int128 wide;

/* Reads a decimal number at the start of s, in billionths, and moves *s behind it. At most nine digits may precede
 * the point. Digits after the ninth decimal place are ignored. */
static bool take_decimal(struct str *s, uint64_t *billionths)
{
    uint64_t unit = BILLION, whole = 0, fraction = 0;
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
    *billionths = whole * BILLION + fraction;
    return digits > 0 || point > 1;
}

bool str_to_amount(struct str s, const struct unit *units, uint64_t max, uint64_t *v)
{
    uint64_t n;

    if (!take_decimal(&s, &n))
        return false;
    for (const struct unit *u = units; u->name; u++) {
        if (!str_is(s, u->name))
            continue;
        wide total = (wide)n * u->factor;
        if (total > (wide)max * BILLION)
            return false;
        *v = (uint64_t)(total / BILLION);
        return true;
    }
    return false;
}

bool str_to_time(struct str s, uint64_t max_ns, uint64_t *ns)
{
    static const struct unit units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", BILLION}, {NULL, 0}};

    return str_to_amount(s, units, max_ns, ns);
}

bool str_to_percent(struct str s, uint64_t *probability)
{
    uint64_t n;

    if (!take_decimal(&s, &n) || !str_is(s, "%") || n > 100 * BILLION)
        return false;
    /* n / 10^11 * 2^32, without overflow: 2^32 / 10^11 = 2^21 / 5^11. */
    *probability = (n << 21) / 48828125;
    if (n && !*probability)
        *probability = 1;
    return true;
}

bool str_to_number(struct str s, uint64_t max, uint64_t *v)
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

        if (digit >= base || digit > max || n > (max - digit) / base)
            return false;
        n = n * base + digit;
    }
    *v = n;
    return true;
}

bool str_to_address(struct str s, uint8_t gid[16])
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
