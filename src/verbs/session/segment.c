// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/segment.h"

#include <errno.h>
#include <sys/mman.h>

#include "src/verbs/base/cancel.h"
#include "src/verbs/session/call.h"

int vb_call_segment(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len,
                    int *fd)
{
    struct vb_call call = {
        .op = op, .req = req, .req_len = req_len, .rep = rep, .rep_len = rep_len, .fds = fd, .num_fds = 1};
    return vb_call(c, &call);
}

bool vb_segment_fits(uint64_t size, uint32_t offset, uint32_t slots, uint32_t stride, uint32_t max_wr,
                     uint64_t slot_bytes)
{
    return (slots & (slots - 1)) == 0 && slots >= max_wr && (slots == 0 || stride >= slot_bytes) &&
           offset + (uint64_t)slots * stride <= size;
}

void *vb_segment_map_part(int fd, uint64_t offset, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    int error = errno;
    vb_close(fd);
    errno = error;
    return base == MAP_FAILED ? NULL : base;
}

void *vb_segment_map(int fd, size_t size)
{
    return vb_segment_map_part(fd, 0, size);
}
