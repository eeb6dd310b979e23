// SPDX-License-Identifier: BSD-2-Clause
/* Registration of memory, and allocation of memory windows, for the engine's owner. */
#ifndef PUMICE_CORE_CONTROL_KEYS_H
#define PUMICE_CORE_CONTROL_KEYS_H

#include "daemon/core/base/types.h"

struct engine;

/* Registers memory; *key receives lkey and rkey (they are the same number). -EINVAL: access flags that contradict
 * each other (REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE) or iova (ZERO_BASED, and it is not 0), a range that
 * wraps, or FLUSH_PERSISTENT, which the engine can't give. -ENOMEM: max_mr reached. */
int mr_register(struct engine *e, const struct mr_init *init, uint32_t *key);
/* Changes an existing registration in place, all or nothing; same errors, the keys stay as they are. -ENOENT: no
 * such key. -EBUSY: a memory window is bound to it, and it would get another place, length or domain, or lose
 * LOCAL_WRITE, MW_BIND or FLUSH_GLOBAL. */
int mr_reregister(struct engine *e, uint32_t key, const struct mr_init *init);
/* -ENOENT: no such key. -EBUSY: a memory window is bound to it. Accesses of packets that come later fail. */
int mr_deregister(struct engine *e, uint32_t key);

/* Windows (IBA 10.6.7) share the key table with regions; they are bound by WR_BIND_MW and invalidated by WR_LOCAL_INV
 * and WR_SEND_WITH_INV. They give remote access only, they are no lkeys
 * (but see mw_alloc_layout).
 *
 * Which rkey a window has. The tag of a type 2 window is its user's: mw_bind.mw_key brings it. A type 1 window gets its
 * next rkey when the bind is posted, long before it runs, because ibv_bind_mw returns it at once: so its owner (the
 * client library) adds 1 to the tag of the rkey that it believes the window to have, and passes the result as
 * mw_bind.new_key. The engine takes over this key if the bind succeeds, and looks at the index alone to know the window,
 * never at the tag of mw_key. So both agree again with the next bind that succeeds, whatever became of those before:
 * one that failed, or was flushed, has or has not changed the key, and its user may or may not have put the old rkey
 * back into struct ibv_mw, as the manual asks. Until then the owner's idea of the rkey may open nothing, which is what
 * a failed bind means. A request that is flushed may have been carried out.
 *
 * A bind is refused (WC_MW_BIND_ERR, QP to ERR) unless: the window, the region and the QP have the same pd; the region
 * has ACCESS_MW_BIND, LOCAL_WRITE if the window is to have REMOTE_WRITE or REMOTE_ATOMIC, FLUSH_GLOBAL if it is to have
 * that; the range lies within it;
 * type 1: not ZERO_BASED, new_key of the same index; type 2: the window is free, the length is not 0, the QP is not
 * XRC_SEND. Type 2 windows can be used and invalidated through the QP alone that bound them, and are free again when it
 * is destroyed.
 *
 * Makes an unbound window of protection domain pd; *key receives its rkey. -EINVAL: no such type; -ENOMEM: max_mr
 * reached. */
int mw_alloc(struct engine *e, uint32_t pd, uint8_t type, uint32_t *key);
/* The same for a window that can also be bound to layouts of up to max_entries entries (layout.h; at most
 * LAYOUT_MAX_ENTRIES), and that has an lkey, the same as its rkey, while it is bound with ACCESS_LOCAL_WRITE. mem:
 * mw_layout_size(max_entries) bytes, aligned as malloc does; the owner's, to be freed after mw_dealloc. */
size_t mw_layout_size(uint32_t max_entries);
int mw_alloc_layout(struct engine *e, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key);
/* Unbinds it, whatever its type, and removes it; key: its present rkey or any of its index. -ENOENT: no such window. */
int mw_dealloc(struct engine *e, uint32_t key);

#endif
