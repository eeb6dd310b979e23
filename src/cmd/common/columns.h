// SPDX-License-Identifier: BSD-2-Clause
/* Tables on the terminal, with aligned columns, by libsmartcols. It knows the width of UTF-8 characters, and replaces
 * control characters by \xNN. Running out of memory ends the program. */
#ifndef PUMICE_SRC_CMD_COMMON_COLUMNS_H
#define PUMICE_SRC_CMD_COMMON_COLUMNS_H

#include <stdbool.h>
#include <stdio.h>

struct libscols_table;
struct libscols_line;

struct columns {
    struct libscols_table *table;
    struct libscols_line *row; /* the last one; NULL: none */
    unsigned next; /* column of its next cell */
};

enum columns_flag {
    COLUMNS_RIGHT = 1, /* aligned on the right, as numbers are */
    COLUMNS_CUT = 2, /* cut if the table is wider than the terminal (columns_fit_terminal) */
};

/* separator: stands between columns. The caller owns the table until columns_fini. */
void columns_init(struct columns *c, const char *separator, bool headings);
void columns_fini(struct columns *c);

/* Cuts columns marked COLUMNS_CUT if lines would be longer than the terminal is wide. */
void columns_fit_terminal(struct columns *c);
/* Adds a column that is at least as wide as its heading, which may be empty, and has at least `width` characters.
 * flags: enum columns_flag. */
void columns_add(struct columns *c, const char *heading, unsigned width, unsigned flags);
/* Starts a row, and fills in its next cell. */
void columns_row(struct columns *c);
void columns_cell(struct columns *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the table. Each line begins with `begin`, has no spaces at its end, and ends with `end` and a newline. */
void columns_print(const struct columns *c, FILE *to, const char *begin, const char *end);

#endif
