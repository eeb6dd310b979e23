// SPDX-License-Identifier: BSD-2-Clause
/* Filters of pumice res: pairs of a field and its values, such as `pid 100 lqpn 17-20,33`. */
#ifndef PUMICE_SRC_CMD_RDMA_FILTER_PAIRS_H
#define PUMICE_SRC_CMD_RDMA_FILTER_PAIRS_H

#include <jansson.h>
#include <stdbool.h>

#define FILTER_PAIRS_MAX 16

struct filter_pairs {
    unsigned n;
    struct {
        const char *name, *values;
    } pair[FILTER_PAIRS_MAX];
};

/* fields: the names that a filter may have, with a space after each. Returns 0, or -1: there is no such field, or there
 * are too many filters. */
int filter_pairs_add(struct filter_pairs *f, const char *fields, const char *name, const char *values);
/* Does the row have all of these values? A list of values, separated by commas, has alternatives. A whole number may be in
 * a range (17-20), and may be written as 0x11. Texts are compared without regard to case. */
bool filter_pairs_match(const struct filter_pairs *f, const json_t *row);

#endif
