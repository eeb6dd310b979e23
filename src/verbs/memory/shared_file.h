// SPDX-License-Identifier: BSD-2-Clause
/* Finds the file of a region that the program shares: a mapping with MAP_SHARED of a memfd, or of a file in tmpfs or
 * hugetlbfs. The daemon maps such a file, too, and so reads the region without a system call. */
#ifndef PUMICE_SRC_VERBS_MEMORY_SHARED_FILE_H
#define PUMICE_SRC_VERBS_MEMORY_SHARED_FILE_H

#include <stdbool.h>

#include "pumice/abi.h"

struct vb_shared_file {
    int fd; /* for the daemon; -1: none */
    bool opened; /* by the library; else the descriptor is the program's */
};

/* Finds a descriptor of the file of the region in *req, and fills in the file's fields of *req. There is none if the
 * region is no such memory, lies in several mappings, or has pages that do not exist yet. There is also none if the
 * program has closed the file, and its path is not in /dev/shm or /dev/hugepages. Keeps errno. */
void vb_shared_file_find(struct vb_shared_file *f, struct pm_reg_mr_req *req);
/* To be called when the daemon has answered. */
void vb_shared_file_end(const struct vb_shared_file *f);

#endif
