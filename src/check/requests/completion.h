// SPDX-License-Identifier: BSD-2-Clause
/* The rules that hold when a program has polled a completion. The caller has the lock of records.h. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_COMPLETION_H
#define PUMICE_SRC_CHECK_REQUESTS_COMPLETION_H

#include "src/check/objects/records.h"

/* The fields of a completion that the rules use. */
struct completion {
    uint64_t wr_id;
    enum ibv_wc_status status;
    int opcode; /* enum ibv_wc_opcode; -1: not known, because of an error or because the CQ does not tell */
    uint32_t qpn;
    const void *caller; /* the return address in the program */
    const void *frame; /* of the function that returns there */
};

void completion_polled(struct cq_record *cq, const struct completion *c);

#endif
