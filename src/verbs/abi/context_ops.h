// SPDX-License-Identifier: BSD-2-Clause
/* The tables of functions in a context. The inline functions of <infiniband/verbs.h> call through them. */
#ifndef PUMICE_SRC_VERBS_ABI_CONTEXT_OPS_H
#define PUMICE_SRC_VERBS_ABI_CONTEXT_OPS_H

#include "src/verbs/session/context.h"

/* Fills the tables of a context. */
void vb_context_ops(struct vb_context *c);

#endif
