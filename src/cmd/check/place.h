// SPDX-License-Identifier: BSD-2-Clause
/* Finds the function, the file and the line of an address in a program or library, by its debug information. */
#ifndef PUMICE_SRC_CMD_CHECK_PLACE_H
#define PUMICE_SRC_CMD_CHECK_PLACE_H

#include <limits.h>
#include <stdint.h>

struct place {
    char module[PATH_MAX]; /* program or library; "": not known */
    uint64_t offset; /* in the module */
    /* By the debug information and the symbols of the module. "" and 0: not known. */
    char function[128];
    char file[PATH_MAX];
    int line;
};

/* From module and offset. What can't be found stays as it was. */
void place_find(struct place *p);

#endif
