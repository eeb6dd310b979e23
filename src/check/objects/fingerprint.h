// SPDX-License-Identifier: BSD-2-Clause
/* Remembers the contents of a send buffer when its request is posted: a copy of a short one, hashes of the parts of a
 * long one. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_FINGERPRINT_H
#define PUMICE_SRC_CHECK_OBJECTS_FINGERPRINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define FINGERPRINT_COPY 4096u /* bytes that are copied */
#define FINGERPRINT_PARTS 64u /* of a longer buffer */

struct fingerprint {
    uint64_t length; /* bytes of the buffer; 0: there is no fingerprint */
    uint32_t part; /* bytes of each part; 0: data is a copy */
    void *data; /* owned: the copy, or a hash for each part */
};

/* Takes the fingerprint of a gather list. Pieces at address 0 are left out. Without memory there is none. */
void fingerprint_take(struct fingerprint *f, const struct ibv_sge *list, unsigned n);

/* Compares the buffer with its fingerprint. False: it has changed, first within [*from, *to). */
bool fingerprint_matches(const struct fingerprint *f, const struct ibv_sge *list, unsigned n, uint64_t *from,
                         uint64_t *to);

void fingerprint_drop(struct fingerprint *f);

#endif
