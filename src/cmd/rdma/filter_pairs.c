// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/rdma/filter_pairs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_field(const char *fields, const char *name)
{
    size_t n = strlen(name);

    for (const char *f = fields; *f; f += strcspn(f, " ") + 1) {
        if (strcspn(f, " ") == n && memcmp(f, name, n) == 0)
            return true;
    }
    return false;
}

int filter_pairs_add(struct filter_pairs *f, const char *fields, const char *name, const char *values)
{
    if (!is_field(fields, name) || f->n == FILTER_PAIRS_MAX)
        return -1;
    f->pair[f->n].name = name;
    f->pair[f->n++].values = values;
    return 0;
}

/* Is n the number, or in the range, at the start of text, which has len characters? */
static bool is_in_range(unsigned long long n, const char *text, size_t len)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    unsigned long long first = strtoull(text, &end, 0), last = first;
    if (*end == '-' && isdigit((unsigned char)end[1]))
        last = strtoull(end + 1, &end, 0);
    return end == text + len && first <= n && n <= last;
}

static bool is_value(const json_t *field, const char *text, size_t len)
{
    const json_t *item;
    size_t i;

    json_array_foreach (field, i, item) {
        if (is_value(item, text, len))
            return true;
    }
    if (json_is_integer(field))
        return is_in_range((unsigned long long)json_integer_value(field), text, len);
    if (json_is_boolean(field))
        return len == (json_is_true(field) ? 4u : 5u) &&
               strncasecmp(text, json_is_true(field) ? "true" : "false", len) == 0;
    const char *own = json_string_value(field);
    return own && strlen(own) == len && strncasecmp(own, text, len) == 0;
}

static bool has_value(const json_t *field, const char *values)
{
    for (;;) {
        size_t n = strcspn(values, ",");

        if (is_value(field, values, n))
            return true;
        if (!values[n])
            return false;
        values += n + 1;
    }
}

bool filter_pairs_match(const struct filter_pairs *f, const json_t *row)
{
    for (unsigned i = 0; i < f->n; i++) {
        if (!has_value(json_object_get(row, f->pair[i].name), f->pair[i].values))
            return false;
    }
    return true;
}
