// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/table.h"

#include <inttypes.h>
#include <string.h>

#define LINE_WIDTH 100
#define CELL_MAX 64 /* characters of a scalar */
#define COLUMNS_MAX 64
#define PATH_LEN 128 /* of a heading */
#define DEPTH_MAX 8

struct out {
    FILE *to;
    const struct table_columns *columns;
    bool all;
};

/* One column of a table. */
struct column {
    char name[CELL_MAX];
    size_t width;
};

static void show_object(const struct out *o, const char *path, const json_t *object, unsigned depth);

static bool is_scalar(const json_t *v)
{
    return !json_is_object(v) && !json_is_array(v);
}

/* An array of scalars is shown as a scalar: "a, b". */
static bool is_list(const json_t *v)
{
    return json_array_size(v) > 0 && is_scalar(json_array_get(v, 0));
}

/* Control characters and long values would break the table. Returns the width in columns. */
static size_t cell(const json_t *v, char out[CELL_MAX])
{
    size_t used = 0;

    out[0] = 0;
    if (json_is_string(v))
        snprintf(out, CELL_MAX, "%s", json_string_value(v));
    else if (json_is_integer(v))
        snprintf(out, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        snprintf(out, CELL_MAX, "%g", json_real_value(v));
    else if (json_is_boolean(v))
        snprintf(out, CELL_MAX, "%s", json_is_true(v) ? "yes" : "no");
    else if (is_list(v))
        for (size_t i = 0; i < json_array_size(v) && used < CELL_MAX - 1; i++) {
            char one[CELL_MAX];

            cell(json_array_get(v, i), one);
            used += (size_t)snprintf(out + used, CELL_MAX - used, "%s%s", i ? ", " : "", one);
        }
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    if (!out[0])
        strcpy(out, "-");
    return strlen(out);
}

static bool has_scalars(const json_t *object)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)object, key, v) if (is_scalar(v) || is_list(v)) return true;
    return false;
}

static void heading(const struct out *o, const char *path)
{
    fprintf(o->to, "\n%s\n", path);
}

/* NAME value pairs, as many to a line as fit. */
static void show_scalars(const struct out *o, const json_t *object, const char *indent)
{
    size_t column = 0;
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)object, key, v)
    {
        char text[CELL_MAX];
        size_t width;

        if (!is_scalar(v) && !is_list(v))
            continue;
        width = strlen(key) + 1 + cell(v, text);
        if (column && column + 3 + width > LINE_WIDTH) {
            fputc('\n', o->to);
            column = 0;
        }
        column += (size_t)fprintf(o->to, "%s%s %s", column ? "   " : indent, key, text);
    }
    if (column)
        fputc('\n', o->to);
}

static bool is_counters(const char *key)
{
    size_t len = strlen(key);

    return len >= strlen("counters") && strcmp(key + len - strlen("counters"), "counters") == 0;
}

static void show_counters(const struct out *o, const json_t *counters)
{
    size_t widest = 0, column = 0;
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)counters, key, v) if (strlen(key) > widest) widest = strlen(key);
    json_object_foreach((json_t *)(uintptr_t)counters, key, v)
    {
        char text[CELL_MAX];

        if (!is_scalar(v) || (!o->all && json_is_integer(v) && json_integer_value(v) == 0))
            continue;
        cell(v, text);
        fprintf(o->to, "%s%-*s %16s", column % 2 ? "    " : "  ", (int)widest, key, text);
        if (++column % 2 == 0)
            fputc('\n', o->to);
    }
    if (column % 2)
        fputc('\n', o->to);
    if (!column)
        fputs("  all zero\n", o->to);
}

static void widen(struct column *c, const json_t *v)
{
    char text[CELL_MAX];
    size_t width = cell(v, text);

    if (width > c->width)
        c->width = width;
}

/* The columns that were chosen for this array. 0: none were. */
static unsigned chosen_columns(const struct out *o, const char *array, struct column columns[COLUMNS_MAX])
{
    const struct table_columns *s = o->columns;
    unsigned n = 0;

    while (s->array && strcmp(s->array, array) != 0)
        s++;
    if (!s->array || o->all)
        return 0;
    for (const char *p = s->columns; *p && n < COLUMNS_MAX; n++) {
        size_t len = strcspn(p, " ");

        columns[n].width = (size_t)snprintf(columns[n].name, CELL_MAX, "%.*s", (int)len, p);
        p += len + (p[len] == ' ');
    }
    return n;
}

/* The scalar members of any row, in the order in which they appear. */
static unsigned all_columns(const json_t *rows, struct column columns[COLUMNS_MAX])
{
    unsigned n = 0;
    size_t i;
    json_t *row;

    json_array_foreach((json_t *)(uintptr_t)rows, i, row)
    {
        const char *key;
        json_t *v;

        json_object_foreach(row, key, v)
        {
            unsigned c;

            if (!is_scalar(v) && !is_list(v))
                continue;
            for (c = 0; c < n && strcmp(columns[c].name, key) != 0; c++)
                ;
            if (c == n && n < COLUMNS_MAX) {
                columns[n].width = (size_t)snprintf(columns[n].name, CELL_MAX, "%s", key);
                n++;
            }
        }
    }
    return n;
}

static void show_table(const struct out *o, const char *array, const json_t *rows)
{
    struct column columns[COLUMNS_MAX];
    unsigned n = chosen_columns(o, array, columns);
    size_t i;
    json_t *row;

    if (!n)
        n = all_columns(rows, columns);
    json_array_foreach((json_t *)(uintptr_t)rows, i, row) for (unsigned c = 0; c < n; c++)
        widen(&columns[c], json_object_get(row, columns[c].name));
    if (n)
        columns[n - 1].width = 0; /* no spaces at the ends of lines */
    for (unsigned c = 0; c < n; c++)
        fprintf(o->to, "  %-*s%s", (int)columns[c].width, columns[c].name, c + 1 == n ? "\n" : "");
    json_array_foreach((json_t *)(uintptr_t)rows, i, row) for (unsigned c = 0; c < n; c++)
    {
        const json_t *v = json_object_get(row, columns[c].name);
        char text[CELL_MAX];

        cell(v, text);
        fprintf(o->to, json_is_number(v) ? "  %*s%s" : "  %-*s%s", (int)columns[c].width, text, c + 1 == n ? "\n" : "");
    }
}

/* How a row is called in headings: by its name or number, else by its place. */
static void row_name(const json_t *row, size_t i, char out[CELL_MAX])
{
    static const char *const names[] = {"name", "host", "qpn", "number", "session", "handle"};

    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        const json_t *v = json_object_get(row, names[k]);

        if (v && is_scalar(v)) {
            cell(v, out);
            return;
        }
    }
    snprintf(out, CELL_MAX, "%zu", i);
}

static void show_member(const struct out *o, const char *path, const char *key, const json_t *v, unsigned depth)
{
    char below[PATH_LEN];
    size_t i;
    json_t *row;

    if (depth == DEPTH_MAX || is_scalar(v) || is_list(v))
        return;
    if (json_is_array(v) && json_array_size(v) == 0)
        return;
    snprintf(below, sizeof(below), "%s%s%s", path, path[0] ? " / " : "", key);
    if (json_is_object(v) && is_counters(key)) {
        heading(o, below);
        show_counters(o, v);
        return;
    }
    if (json_is_object(v)) {
        if (has_scalars(v))
            heading(o, below);
        show_object(o, below, v, depth + 1);
        return;
    }
    heading(o, below);
    show_table(o, key, v);
    json_array_foreach((json_t *)(uintptr_t)v, i, row)
    {
        char name[CELL_MAX], row_path[PATH_LEN];
        const char *inner;
        json_t *w;

        row_name(row, i, name);
        snprintf(row_path, sizeof(row_path), "%.80s %.40s", below, name);
        json_object_foreach(row, inner, w) if (o->all || depth == 0 || !is_counters(inner))
            show_member(o, row_path, inner, w, depth + 1);
    }
}

static void show_object(const struct out *o, const char *path, const json_t *object, unsigned depth)
{
    const char *key;
    json_t *v;

    show_scalars(o, object, "  ");
    json_object_foreach((json_t *)(uintptr_t)object, key, v) show_member(o, path, key, v, depth);
}

void table_print(FILE *to, const json_t *document, const struct table_columns *columns, bool all)
{
    const struct out o = {.to = to, .columns = columns, .all = all};

    show_object(&o, "", document, 0);
}
