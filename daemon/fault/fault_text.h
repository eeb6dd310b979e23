// SPDX-License-Identifier: BSD-2-Clause
/* Reads the texts that describe faults and networks: cuts them into parts, reads numbers with units, and says where a text
 * is wrong. The texts come from users, so every length is checked. The module allocates nothing. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_TEXT_H
#define PUMICE_DAEMON_FAULT_FAULT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text, not NUL-terminated. */
struct str {
    const char *p;
    size_t len;
};

/* Where errors of a text go. */
struct fault_text {
    const char *begin; /* of the whole text */
    bool has_lines; /* errors name the line, too */
    char *why; /* may be NULL if why_len is 0 */
    size_t why_len;
};

/* Writes a sentence to t->why, behind the line and column of `at`, which points into the text. Returns -EINVAL. */
int fault_text_error(const struct fault_text *t, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Cuts off the part before the first `sep` (or everything), and moves *s behind it. */
struct str str_cut(struct str *s, char sep);
/* Cuts off the first word, which ends at a blank, and moves *s to the next word. Empty: there is none. */
struct str str_word(struct str *s);
/* Without the blanks at both ends. */
struct str str_trim(struct str s);
bool str_is(struct str s, const char *text);
bool str_is_any_case(struct str s, const char *text);
bool str_equal(struct str a, struct str b);
static inline bool str_has(struct str s, char c)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == c)
            return true;
    return false;
}

/* A unit of a number with decimals, and how much it is. */
struct unit {
    const char *name; /* NULL: the end of a table */
    uint64_t factor;
};
/* They read all of s and return false if it is not of this form. */
bool str_to_number(struct str s, uint64_t max, uint64_t *v); /* decimal, or hexadecimal with 0x */
/* A decimal number and a unit of the table, rounded down. The result is at most max. */
bool str_to_amount(struct str s, const struct unit *units, uint64_t max, uint64_t *v);
bool str_to_time(struct str s, uint64_t max_ns, uint64_t *ns); /* with ns, us, ms or s */
bool str_to_percent(struct str s, uint64_t *probability); /* with %; in multiples of 2^-32 */
bool str_to_address(struct str s, uint8_t gid[16]); /* IPv4 becomes ::ffff:a.b.c.d */

#endif
