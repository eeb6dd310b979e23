// SPDX-License-Identifier: BSD-2-Clause
/* A JSON document as text for people. What the daemons have to tell grows; so this knows shapes, not names:
 *
 *     object             its scalars on a line (NAME value  NAME value), then its other members, each with a heading
 *     array of objects   a table, one row each; then what stands inside of them, with the row's name in the heading
 *     object "counters", "..._counters"  the members that are not zero, in columns */
#ifndef PUMICE_SRC_CMD_INSPECT_TABLE_H
#define PUMICE_SRC_CMD_INSPECT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Tables that would be too wide: which columns are shown, in which order. */
struct table_columns {
    const char *array; /* name of the array; NULL ends the list */
    const char *columns; /* separated by single spaces */
};

/* all: counters that are zero, all columns, and the counters of rows within rows, too. */
void table_print(FILE *to, const json_t *document, const struct table_columns *columns, bool all);

#endif
