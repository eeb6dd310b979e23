// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/columns.h"

#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"

static void check(bool good)
{
    if (good)
        return;
    say("out of memory");
    exit(1);
}

void columns_init(struct columns *c, const char *separator, bool headings)
{
    *c = (struct columns){.table = scols_new_table()};
    check(c->table);
    scols_table_set_column_separator(c->table, separator);
    scols_table_enable_noheadings(c->table, !headings);
    scols_table_set_termforce(c->table, SCOLS_TERMFORCE_NEVER);
}

void columns_fini(struct columns *c)
{
    scols_unref_table(c->table);
}

void columns_fit_terminal(struct columns *c)
{
    scols_table_set_termforce(c->table, SCOLS_TERMFORCE_AUTO);
}

void columns_add(struct columns *c, const char *heading, unsigned width, unsigned flags)
{
    int f = (flags & COLUMNS_RIGHT ? SCOLS_FL_RIGHT : 0) | (flags & COLUMNS_CUT ? SCOLS_FL_TRUNC : 0);
    char name[64];

    /* A column is at least as wide as its heading. The width of libsmartcols itself is a hint that it may ignore. */
    snprintf(name, sizeof(name), flags & COLUMNS_RIGHT ? "%*s" : "%-*s", (int)width, heading);
    check(scols_table_new_column(c->table, name, 0, f));
}

void columns_row(struct columns *c)
{
    c->row = scols_table_new_line(c->table, NULL);
    c->next = 0;
    check(c->row);
}

void columns_cell(struct columns *c, const char *format, ...)
{
    char *text;
    va_list ap;

    va_start(ap, format);
    check(vasprintf(&text, format, ap) >= 0);
    va_end(ap);
    check(scols_line_refer_data(c->row, c->next++, text) == 0); /* the line owns the text now */
}

void columns_print(const struct columns *c, FILE *to, const char *begin, const char *end)
{
    char *text;

    check(scols_print_table_to_string(c->table, &text) == 0);
    for (char *line = text, *rest; line && *line; line = rest) {
        size_t len = strcspn(line, "\n");

        rest = line[len] ? line + len + 1 : NULL;
        while (len && line[len - 1] == ' ')
            len--;
        fprintf(to, "%s%.*s%s\n", begin, (int)len, line, end);
    }
    free(text);
}
