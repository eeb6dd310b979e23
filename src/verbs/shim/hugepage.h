// SPDX-License-Identifier: BSD-2-Clause
/* Puts registered memory into huge pages. The daemon copies from and to registered memory by system calls that look up
 * every page, and the lookup costs more than the copy itself. With huge pages a copy takes about half as long.
 * PM_ENV_HUGE_PAGES=off turns this off. It is also off where small pages do not have 4 KiB, because huge pages then do
 * not have 2 MiB, and while the machine is crowded (crowd.h), unless PM_ENV_HUGE_PAGES=on. */
#ifndef PUMICE_SRC_VERBS_SHIM_HUGEPAGE_H
#define PUMICE_SRC_VERBS_SHIM_HUGEPAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes huge pages for the region [addr, addr + length) of at most 256 MiB. A range becomes a huge page if the region
 * fills a quarter of it or more, and if all of it is in one mapping of the program. The content and the sharing of the
 * pages stay. writable: in regions of up to 16 MiB, also converts pages that were never written. Nothing changes where
 * this is impossible (a kernel before 6.1, no memory, madvise(MADV_NOHUGEPAGE)). errno is kept. */
void vb_hugepage_use(void *addr, size_t length, bool writable);

/* Makes malloc take blocks of up to 32 MiB from its heap and not from a mapping for each. In the heap several buffers
 * can share a huge page. glibc changes to the heap by itself when the program frees a block of nearly that size. The
 * library calls this function when a program opens a device; only the first call has an effect. It does nothing if the
 * program or its environment tunes malloc (mallopt(3)). */
void vb_hugepage_heap(void);

#endif
