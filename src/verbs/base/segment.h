// SPDX-License-Identifier: BSD-2-Clause
/* Shared segments that the daemon makes. */
#ifndef VERBS_SEGMENT_H
#define VERBS_SEGMENT_H

#include "src/verbs/base/objects.h"

/* A request whose reply brings one descriptor, of a segment. As vb_call_simple. */
int vb_call_segment(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len,
                    int *fd);

/* Does a ring lie inside its segment, with slots (a power of two, or none) that are enough for max_wr requests and
 * hold slot_bytes each? */
bool vb_segment_fits(uint64_t size, uint32_t offset, uint32_t slots, uint32_t stride, uint32_t max_wr,
                     uint64_t slot_bytes);

/* Maps size bytes of the segment fd, which is closed in any case. NULL with errno on failure. */
void *vb_segment_map(int fd, size_t size);

#endif
