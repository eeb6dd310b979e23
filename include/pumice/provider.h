// SPDX-License-Identifier: BSD-2-Clause
/* A table of functions by which libpumice.so calls Pumice's libibverbs.so.1, if that is the one in the process.
 * Programs use pumice/layout.h instead. */
#ifndef PUMICE_PROVIDER_H
#define PUMICE_PROVIDER_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "pumice/layout.h"

#define PUMICE_PROVIDER_VERSION 1u
struct pumice_provider {
    uint32_t version; /* PUMICE_PROVIDER_VERSION */
    /* Does the context belong to this library? Called before any of the functions below. */
    bool (*owns)(const struct ibv_context *context);
    void (*query_caps)(struct ibv_context *context, struct pumice_ncm_caps *caps);
    struct ibv_mw *(*alloc_mw)(const struct pumice_mw_alloc_attr_ex *attr); /* NULL with errno */
    int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, const struct pumice_mw_bind *bind);
    uint32_t (*mw_descriptors)(const struct ibv_mw *mw);
    uint32_t (*mw_lkey)(const struct ibv_mw *mw);
};

/* Our libibverbs.so.1 exports this symbol; the real one does not. */
#define PUMICE_PROVIDER_SYMBOL "pumice_provider"
extern const struct pumice_provider pumice_provider;

#endif
