// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/table.h"

#include <inttypes.h>
#include <string.h>

#include "src/cmd/common/columns.h"

#define LINE_WIDTH 100 /* of lines with scalars */
#define CELL_MAX 64 /* bytes of a scalar, with the final 0 */
#define PATH_LEN 128 /* bytes of a heading, with the final 0 */
#define DEPTH_MAX 8

struct out {
    FILE *to;
    const struct table_columns *columns;
    bool all;
};

static void show_object(const struct out *o, const char *path, const json_t *object, unsigned depth);

static bool is_scalar(const json_t *v)
{
    return !json_is_object(v) && !json_is_array(v);
}

/* An array of scalars. It is printed as a scalar: "a, b". */
static bool is_list(const json_t *v)
{
    return json_array_size(v) > 0 && is_scalar(json_array_get(v, 0));
}

/* Removes the last character if only some of its bytes in UTF-8 are there. */
static void drop_broken_end(char *text)
{
    size_t len = strlen(text), start = len;

    while (start && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (!start)
        return;
    unsigned char lead = (unsigned char)text[--start];
    if (len - start < (lead >= 0xf0 ? 4u : lead >= 0xe0 ? 3u : lead >= 0xc0 ? 2u : 1u))
        text[start] = 0;
}

/* Writes a scalar or a list of scalars as text; "-" for any other value. Long values are cut. Control characters would
 * break the line, so they become "?". Returns the length. */
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
    drop_broken_end(out);
    if (!out[0])
        strcpy(out, "-");
    return strlen(out);
}

static bool has_scalars(const json_t *object)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)object, key, v)
        if (is_scalar(v) || is_list(v))
            return true;
    return false;
}

static void heading(const struct out *o, const char *path)
{
    fprintf(o->to, "\n%s\n", path);
}

/* Prints NAME value pairs, as many in a line as fit. */
static void show_scalars(const struct out *o, const json_t *object, const char *indent)
{
    size_t column = 0;
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)object, key, v) {
        char text[CELL_MAX];

        if (!is_scalar(v) && !is_list(v))
            continue;
        size_t width = strlen(key) + 1 + cell(v, text);
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
    struct columns columns;
    unsigned n = 0;
    const char *key;
    json_t *v;

    columns_init(&columns, "  ", false);
    for (unsigned side = 0; side < 2; side++) {
        columns_add(&columns, "", 0, 0);
        columns_add(&columns, "", 16, COLUMNS_RIGHT);
    }
    json_object_foreach ((json_t *)(uintptr_t)counters, key, v) {
        char text[CELL_MAX];

        if (!is_scalar(v) || (!o->all && json_is_integer(v) && json_integer_value(v) == 0))
            continue;
        cell(v, text);
        if (n++ % 2 == 0)
            columns_row(&columns);
        columns_cell(&columns, "%s", key);
        columns_cell(&columns, "%s", text);
    }
    if (n)
        columns_print(&columns, o->to, "  ", "");
    else
        fputs("  all zero\n", o->to);
    columns_fini(&columns);
}

/* Returns a new array of strings with the columns that the caller chose for this array. Returns NULL if the caller
 * chose none. */
static json_t *chosen_columns(const struct out *o, const char *array)
{
    const struct table_columns *s = o->columns;

    while (s->array && strcmp(s->array, array) != 0)
        s++;
    if (!s->array || o->all)
        return NULL;
    json_t *names = json_array();
    for (const char *p = s->columns; *p;) {
        size_t len = strcspn(p, " ");

        json_array_append_new(names, json_stringn(p, len));
        p += len + (p[len] == ' ');
    }
    return names;
}

static bool contains(const json_t *names, const char *name)
{
    const json_t *v;
    size_t i;

    json_array_foreach (names, i, v) {
        if (strcmp(json_string_value(v), name) == 0)
            return true;
    }
    return false;
}

/* Returns a new array of strings: the names of all scalar members of the rows, in the order of their appearance. */
static json_t *all_columns(const json_t *rows)
{
    json_t *names = json_array(), *row, *v;
    const char *key;
    size_t i;

    json_array_foreach ((json_t *)(uintptr_t)rows, i, row) {
        json_object_foreach (row, key, v) {
            if ((is_scalar(v) || is_list(v)) && !contains(names, key))
                json_array_append_new(names, json_string(key));
        }
    }
    return names;
}

/* True if all values of the column are numbers or missing. */
static bool is_number_column(const json_t *rows, const char *name)
{
    const json_t *row, *v;
    bool numbers = false;
    size_t i;

    json_array_foreach (rows, i, row) {
        v = json_object_get(row, name);
        if (v && !json_is_null(v) && !json_is_number(v))
            return false;
        numbers |= json_is_number(v);
    }
    return numbers;
}

static void show_table(const struct out *o, const char *array, const json_t *rows)
{
    json_t *names = chosen_columns(o, array);
    const json_t *name, *row;
    struct columns columns;
    size_t i, k;

    if (!names)
        names = all_columns(rows);
    columns_init(&columns, "  ", true);
    json_array_foreach (names, k, name) {
        const char *text = json_string_value(name);

        columns_add(&columns, text, 0, is_number_column(rows, text) ? COLUMNS_RIGHT : 0);
    }
    json_array_foreach (rows, i, row) {
        columns_row(&columns);
        json_array_foreach (names, k, name) {
            char text[CELL_MAX];

            cell(json_object_get(row, json_string_value(name)), text);
            columns_cell(&columns, "%s", text);
        }
    }
    columns_print(&columns, o->to, "  ", "");
    columns_fini(&columns);
    json_decref(names);
}

/* Writes the name of a row for headings: its name or number, or its position if it has neither. */
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
    json_array_foreach ((json_t *)(uintptr_t)v, i, row) {
        char name[CELL_MAX], row_path[PATH_LEN];
        const char *inner;
        json_t *w;

        row_name(row, i, name);
        snprintf(row_path, sizeof(row_path), "%.80s %.40s", below, name);
        json_object_foreach (row, inner, w)
            if (o->all || depth == 0 || !is_counters(inner))
                show_member(o, row_path, inner, w, depth + 1);
    }
}

static void show_object(const struct out *o, const char *path, const json_t *object, unsigned depth)
{
    const char *key;
    json_t *v;

    show_scalars(o, object, "  ");
    json_object_foreach ((json_t *)(uintptr_t)object, key, v)
        show_member(o, path, key, v, depth);
}

void table_print(FILE *to, const json_t *document, const struct table_columns *columns, bool all)
{
    const struct out o = {.to = to, .columns = columns, .all = all};

    show_object(&o, "", document, 0);
}
