// SPDX-License-Identifier: BSD-2-Clause
/* Prints a JSON document of the daemon as text. The shape of a member decides how it is printed, not its name. So new
 * members need no change here:
 *
 *     object             one line with its scalars (NAME value   NAME value), then each other member below a heading
 *     array of objects   a table with one row for each object, then their members below headings with the row's name
 *     object "counters", "..._counters"  its members that are not zero, in columns */
#ifndef PUMICE_SRC_CMD_INSPECT_TABLE_H
#define PUMICE_SRC_CMD_INSPECT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The columns of a table that would be too wide with all of them. */
struct table_columns {
    const char *array; /* name of the array; NULL ends the list */
    const char *columns; /* the columns in their order, separated by single spaces */
};

/* Prints the document. With `all`, also prints counters that are zero, all columns, and the counters of nested rows. */
void table_print(FILE *to, const json_t *document, const struct table_columns *columns, bool all);

#endif
