// SPDX-License-Identifier: BSD-2-Clause
/* Huge pages for registered memory. The daemon copies from and to it by system calls that look up every page. The
 * lookup costs more than the copy itself. With huge pages a copy takes about half as long. PM_ENV_HUGE_PAGES=off turns
 * this off. It is also off where huge pages do not have 2 MiB. */
#ifndef PUMICE_SRC_VERBS_SHIM_HUGEPAGE_H
#define PUMICE_SRC_VERBS_SHIM_HUGEPAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes huge pages for the region [addr, addr + length) of at most 256 MiB: each huge page of which the region fills a
 * quarter or more, if all of it is of one mapping of the program. Content and sharing of the pages stay. writable: also
 * pages that were never written, in regions of up to 16 MiB. Where it is impossible (a kernel before 6.1, no memory,
 * madvise(MADV_NOHUGEPAGE)), nothing changes. errno is kept. */
void vb_hugepage_use(void *addr, size_t length, bool writable);

/* Makes malloc take blocks of up to 32 MiB from its heap and not from a mapping for each. In the heap several buffers
 * can share a huge page. glibc does the same by itself once a block of nearly that size was freed. It is called when a
 * program opens a device, and works once. It does nothing if the program or its environment tunes malloc
 * (mallopt(3)). */
void vb_hugepage_heap(void);

#endif
