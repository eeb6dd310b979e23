// SPDX-License-Identifier: BSD-2-Clause
/* Maps the file of a registered region into the daemon, if the program shares the memory by a file in memory: a memfd,
 * a file of /dev/shm or any tmpfs, or of hugetlbfs. client_mem/shared_region.h says what for.
 *
 * The daemon maps nothing that could make it wait. A file in memory has no server: F_GET_SEALS, which the kernel answers
 * without the file system, works for no other file. The program may make the file shorter at any time. Then the kernel
 * sends SIGBUS, and segment_guard.h replaces the pages.
 *
 * Pages that the daemon touches first belong to its memory control group. So a region is mapped only for a program of
 * the daemon's own user. */
#ifndef PUMICE_DAEMON_OBJECTS_MR_FILE_H
#define PUMICE_DAEMON_OBJECTS_MR_FILE_H

#include "daemon/client_mem/client_mem.h"
#include "pumice/abi.h"

struct session;
struct mr_file;

/* Longer regions in small pages are not mapped: to unmap them would hold the device up. */
#define MR_FILE_LENGTH_MAX (1ull << 30)

/* Maps the region, if the request brought its file and all conditions hold. NULL: the daemon reads the region like any
 * other memory. */
struct mr_file *mr_file_map(struct session *s, const struct pm_reg_mr_req *rq);
/* f may be NULL. The keys of the region are gone. */
void mr_file_unmap(struct session *s, struct mr_file *f);
/* The bits of the region's number in the space of its segments; 0 for NULL. */
uint32_t mr_file_space(const struct mr_file *f);
/* Does the daemon read the region from its own mapping? */
bool mr_file_in_use(const struct mr_file *f);

#endif
