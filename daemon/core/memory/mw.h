// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows of types 1 and 2B (IBA 10.6.7): binding, unbinding, invalidating. mw_alloc and mw_dealloc are in
 * engine.h. */
#ifndef PUMICE_CORE_MW_H
#define PUMICE_CORE_MW_H

#include "daemon/core/memory/key.h"

struct qp;

/* Carries out a bind request of the QP's send queue. False: it is against the rules, and nothing has changed; *cause is
 * then the rule that the layout broke (enum layout_error), if that is why. */
bool mw_bind(struct qp *qp, const struct mw_bind *bind, uint8_t *cause);
/* The window of type 2B that is bound through this QP and has this rkey, which a request to invalidate names; NULL:
 * there is none, and it must be refused. */
struct mkey *mw_find_bound(struct qp *qp, uint32_t rkey);
/* Makes a bound window free. */
void mw_unbind(struct engine *e, struct mkey *mw);
/* A QP is going: the windows that are bound through it become free. */
void mw_forget_qp(struct qp *qp);

#endif
