// SPDX-License-Identifier: BSD-2-Clause
/* Shared memory segments with the rings of queues. The daemon makes them; this module asks for them, checks their sizes
 * and maps them. */
#ifndef PUMICE_SRC_VERBS_SESSION_SEGMENT_H
#define PUMICE_SRC_VERBS_SESSION_SEGMENT_H

#include "src/verbs/session/context.h"

/* Sends a request whose reply brings the descriptor of a segment. Returns what vb_call returns. */
int vb_call_segment(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len,
                    int *fd);

/* Does a ring lie inside its segment of size bytes? Its slots must be a power of two, or none, enough for max_wr
 * requests, and of slot_bytes at least. */
bool vb_segment_fits(uint64_t size, uint32_t offset, uint32_t slots, uint32_t stride, uint32_t max_wr,
                     uint64_t slot_bytes);

/* Maps size bytes of the segment fd, and closes fd in any case. Returns NULL with errno on failure. */
void *vb_segment_map(int fd, size_t size);
/* The same, for size bytes of the segment from offset on, which is a multiple of the page size. */
void *vb_segment_map_part(int fd, uint64_t offset, size_t size);

#endif
