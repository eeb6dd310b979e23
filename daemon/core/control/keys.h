// SPDX-License-Identifier: BSD-2-Clause
/* Registration of memory, and allocation of memory windows, for the engine's owner. The owner knows the engine, but not
 * its key table. So these functions only pass the calls on to memory/key.h and memory/mw.h. */
#ifndef PUMICE_DAEMON_CORE_CONTROL_KEYS_H
#define PUMICE_DAEMON_CORE_CONTROL_KEYS_H

#include "daemon/core/base/types.h"

struct engine;

/* Registers memory. *key receives the lkey and rkey, which are the same number. -EINVAL: pd is 0; REMOTE_WRITE or
 * REMOTE_ATOMIC without LOCAL_WRITE; ZERO_BASED with an iova that is not 0; a range that wraps; unknown flags; or
 * FLUSH_PERSISTENT, which the engine can't give. -ENOMEM: max_mr reached. */
int mr_register(struct engine *e, const struct mr_init *init, uint32_t *key);
/* Changes an existing registration in place, all or nothing. It has the errors of mr_register, and after an error the
 * keys stay as they are. -ENOENT: no such key. -EBUSY: a memory window is bound to the region, and the change would
 * affect it. That is a change of place, length or domain, or the loss of LOCAL_WRITE, MW_BIND or FLUSH_GLOBAL. */
int mr_reregister(struct engine *e, uint32_t key, const struct mr_init *init);
/* -ENOENT: no such key. -EBUSY: a memory window is bound to it. Accesses of packets that come later fail. */
int mr_deregister(struct engine *e, uint32_t key);

/* Windows (IBA 10.6.7) share the key table with regions. WR_BIND_MW binds them; WR_LOCAL_INV and WR_SEND_WITH_INV
 * invalidate them. They give remote access only, and are no lkeys (but see mw_alloc_layout).
 *
 * The rkey of a window. The user chooses the tag of a type 2 window: mw_bind.mw_key brings it. A type 1 window gets its
 * next rkey when the bind is posted, long before it runs, because ibv_bind_mw returns the rkey at once. So the owner
 * (the client library) computes it: it adds 1 to the tag of the last rkey that it knows, and passes the result as
 * mw_bind.new_key. If the bind succeeds, the engine takes over this key. It finds the window by the index alone, never
 * by the tag of mw_key. So both sides agree again with the next bind that succeeds. After a bind that failed or was
 * flushed, the two sides may differ: the engine may have kept the key, and the user may not have put the old rkey back
 * into struct ibv_mw, as the manual asks. Until the next bind that succeeds, the owner's rkey may then open nothing, as
 * a failed bind implies. A request that is flushed may have been carried out.
 *
 * A bind is refused (WC_MW_BIND_ERR, QP to ERR) unless:
 *   - the window, the region and the QP have the same pd;
 *   - the region has ACCESS_MW_BIND; LOCAL_WRITE, if the window is to have REMOTE_WRITE or REMOTE_ATOMIC; FLUSH_GLOBAL,
 *     if the window is to have it;
 *   - the range lies within the region;
 *   - type 1: it is not ZERO_BASED, and new_key has the same index;
 *   - type 2: the window is free, the length is not 0, and the QP is not XRC_SEND.
 * Only the QP that bound a type 2 window can use and invalidate it. The window is free again when this QP is destroyed.
 *
 * mw_alloc makes an unbound window of protection domain pd; *key receives its rkey. -EINVAL: no such type; -ENOMEM:
 * max_mr reached. */
int mw_alloc(struct engine *e, uint32_t pd, uint8_t type, uint32_t *key);
/* Bytes of memory for mw_alloc_layout. */
size_t mw_layout_size(uint32_t max_entries);
/* As mw_alloc, for a window that can also be bound to layouts of up to max_entries entries (layout.h; at most
 * LAYOUT_MAX_ENTRIES). While it is bound with ACCESS_LOCAL_WRITE, it has an lkey, which is the same number as its rkey.
 * mem: mw_layout_size(max_entries) bytes, aligned as by malloc. The owner frees mem after mw_dealloc. */
int mw_alloc_layout(struct engine *e, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key);
/* Unbinds a window of any type and removes it. key: its rkey, or any key of its index. -ENOENT: no such window. */
int mw_dealloc(struct engine *e, uint32_t key);

#endif
