// SPDX-License-Identifier: BSD-2-Clause
/* Huge pages for registered memory. The daemon copies from and to it by system calls that look up every page, which costs more
 * than the copy itself; with huge pages a copy takes about half as long. PM_ENV_HUGE_PAGES=off leaves memory as it is, and so do
 * systems whose huge pages are not of 2 MiB. */
#ifndef PUMICE_SRC_VERBS_SHIM_HUGEPAGE_H
#define PUMICE_SRC_VERBS_SHIM_HUGEPAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the huge pages of which [addr, addr + length), at most 256 MiB, fills a quarter or more present and huge, if all of such a
 * page is of one mapping of the program. Its content and sharing stay as they are. writable: up to 16 MiB also where nothing was
 * written yet. Where it can't be done (a kernel before 6.1, no memory, madvise(MADV_NOHUGEPAGE)) nothing is lost. errno is kept. */
void vb_hugepage_use(void *addr, size_t length, bool writable);

/* Lets malloc take blocks of up to 32 MiB from its heap, where buffers of less than a huge page can be in one, rather than from
 * a mapping of their own for each: as glibc does by itself once a block of nearly that size has been freed. For programs that
 * open a device, once; not if the program or its environment says where malloc shall take memory from (mallopt(3)). */
void vb_hugepage_heap(void);

#endif
