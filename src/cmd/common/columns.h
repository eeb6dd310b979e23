// SPDX-License-Identifier: BSD-2-Clause
/* Prints tables with aligned columns. It uses libsmartcols, which knows the width of UTF-8 characters and replaces
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

/* Makes an empty table. separator: the text between two columns. headings: whether columns_print prints the headings.
 * The caller releases the table by columns_fini. */
void columns_init(struct columns *c, const char *separator, bool headings);
void columns_fini(struct columns *c);

/* If lines would be longer than the terminal is wide, columns_print cuts the columns marked COLUMNS_CUT. */
void columns_fit_terminal(struct columns *c);
/* Adds a column. It is at least `width` characters wide, and at least as wide as its heading. The heading may be "".
 * flags: enum columns_flag. */
void columns_add(struct columns *c, const char *heading, unsigned width, unsigned flags);
/* columns_row starts a row. columns_cell fills in the next cell of the last row. */
void columns_row(struct columns *c);
void columns_cell(struct columns *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the table. Each line begins with `begin`, has no spaces at its end, and ends with `end` and a newline. */
void columns_print(const struct columns *c, FILE *to, const char *begin, const char *end);

#endif
