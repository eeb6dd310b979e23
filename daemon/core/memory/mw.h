// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows of types 1 and 2B (IBA 10.6.7): allocate, bind, unbind, invalidate. control/keys.h has the rules of
 * binding.
 *
 * A bound window of type 2B is on a list of its QP. So the window is unbound when the QP is destroyed, and a later QP
 * of the same number can't use it. */
#ifndef PUMICE_DAEMON_CORE_MEMORY_MW_H
#define PUMICE_DAEMON_CORE_MEMORY_MW_H

#include "daemon/core/memory/key.h"

/* The QP that binds a window. */
struct mw_binder {
    uint32_t qpn, pd;
    struct list_node *windows; /* list of the windows of type 2B that are bound through the QP: mkey.mw.of_qp */
};

/* See mw_alloc, mw_alloc_layout and mw_dealloc in control/keys.h. */
int mw_make(struct key_table *t, uint32_t pd, uint8_t type, uint32_t *key);
int mw_make_layout(struct key_table *t, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key);
int mw_remove(struct key_table *t, uint32_t key);
/* Bytes of memory for a window that can be bound to layouts of up to max_entries entries. */
size_t mw_shape_size(uint32_t max_entries);

/* The window of a key's index, whatever the tag of the key is. NULL: there is none. */
struct mkey *mw_find(const struct key_table *t, uint32_t key);
/* Carries out a bind request of a QP's send queue. False: the request breaks a rule, and nothing has changed. *cause is
 * then the rule that the layout broke (enum layout_error), or 0 for any other rule. */
bool mw_bind(struct key_table *t, const struct mw_binder *by, const struct mw_bind *bind, uint8_t *cause);
/* The window that a request to invalidate names by its rkey: a window of type 2B that is bound through the QP numbered
 * qpn. NULL: there is none, and the request must be refused. */
struct mkey *mw_find_bound(const struct key_table *t, uint32_t qpn, uint32_t rkey);
/* Unbinds a window, if it is bound. */
void mw_unbind(struct key_table *t, struct mkey *mw);
/* Unbinds all windows of the list of a QP that is being destroyed. */
void mw_unbind_all(struct key_table *t, struct list_node *windows);

#endif
