// SPDX-License-Identifier: BSD-2-Clause
/* Reads the findings of the checker (src/check) in all processes of a run, and merges them by rule and place. */
#ifndef PUMICE_SRC_CMD_CHECK_FINDINGS_H
#define PUMICE_SRC_CMD_CHECK_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "src/cmd/check/place.h"

#define FINDING_TEXT_MAX 512

/* Calls of functions, the innermost one first. */
struct calls {
    struct place *list; /* [n], owned */
    size_t n;
};

struct finding {
    char rule[32];
    char text[FINDING_TEXT_MAX]; /* of the first time, one sentence without an end of line */
    uint64_t count; /* times, in all processes */
    unsigned processes;
    struct calls where;
    struct calls other; /* of another party; n 0: there is none */
    char whose[64]; /* what that one is, as in "the earlier request" */
};

struct findings {
    struct finding *list; /* [n], owned; in the order in which they were read */
    size_t n;
};

/* Reads the files of a directory, and finds the places. Files and lines in another form are left out. Returns 0, or -ENOMEM,
 * or the error of the directory. */
int findings_read(struct findings *f, const char *dir);
void findings_free(struct findings *f);

#endif
