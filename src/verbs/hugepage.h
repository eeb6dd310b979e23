// SPDX-License-Identifier: BSD-2-Clause
/* Huge pages for registered memory. The daemon copies from and to it by system calls that look up every page, which costs more
 * than the copy itself; with huge pages a copy takes about half as long. PM_ENV_HUGE_PAGES=off leaves memory as it is. */
#ifndef PUMICE_VERBS_HUGEPAGE_H
#define PUMICE_VERBS_HUGEPAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the huge pages, 2 MiB each, of which [addr, addr + length) fills a quarter or more present and huge, if all of such a page
 * is of one mapping of the program. Like the pinning of a NIC this makes memory present; its content and sharing stay as they are.
 * writable: also those where nothing was written yet, which a region that is only read hardly has. Where it can't be done (a kernel
 * before 6.1, no memory, madvise(MADV_NOHUGEPAGE)) nothing is lost. errno is kept. */
void vb_hugepage_use(void *addr, size_t length, bool writable);

/* Lets malloc take blocks of up to 32 MiB from its heap, where buffers of less than a huge page can be in one, rather than from
 * a mapping of their own for each. That is what glibc does by itself once a block of that size has been freed. For
 * programs that open a device, once; not if their environment says where malloc shall take memory from (mallopt(3)). */
void vb_hugepage_heap(void);

#endif
