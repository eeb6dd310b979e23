// SPDX-License-Identifier: BSD-2-Clause
/* Finds the functions, files and lines of an address in a program or library, by its debug information. */
#ifndef PUMICE_SRC_CMD_CHECK_PLACE_H
#define PUMICE_SRC_CMD_CHECK_PLACE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_INLINED 4u /* functions of one address, at most */

struct place {
    char module[PATH_MAX]; /* program or library; "": not known */
    uint64_t offset; /* in the module */
    /* By the debug information and the symbols of the module. "" and 0: not known. */
    char function[128];
    char file[PATH_MAX];
    int line;
};

/* The modules that were read. */
struct places;

/* NULL: no memory. */
struct places *places_new(void);
void places_free(struct places *all);

/* From the module and the offset of *raw. An address belongs to several functions if the compiler inlined calls: the innermost
 * is found[0]. Inlined verbs are left out. What can't be found is "". Returns how many, at least 1. */
size_t place_find(struct places *all, const struct place *raw, struct place found[PLACE_INLINED]);

#endif
