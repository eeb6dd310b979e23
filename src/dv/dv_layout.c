// SPDX-License-Identifier: BSD-2-Clause
/* The functions of pumice/layout.h. They find out whether an object belongs to Pumice's libibverbs.so.1. If so, they
 * call that library, which carries out the operation (pumice/provider.h). If not, they fail. */
#include "pumice/layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "daemon/core/memory/layout.h"
#include "pumice/provider.h"

#define EXPORT __attribute__((visibility("default")))

/* The functions of Pumice's libibverbs, or NULL if the context belongs to another libibverbs. A process may have loaded
 * the library for a plugin only. Then a search in the global scope does not find it. */
static const struct pumice_provider *provider(const struct ibv_context *context)
{
    const struct pumice_provider *p = dlsym(RTLD_DEFAULT, PUMICE_PROVIDER_SYMBOL);

    if (!p) {
        void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

        if (lib) {
            p = dlsym(lib, PUMICE_PROVIDER_SYMBOL);
            dlclose(lib);
        }
    }
    return p && p->version == PUMICE_PROVIDER_VERSION && context && p->owns(context) ? p : NULL;
}

EXPORT int pumice_query_ncm_caps(struct ibv_context *context, struct pumice_ncm_caps *caps, size_t size)
{
    const struct pumice_provider *p = provider(context);
    struct pumice_ncm_caps all = {0};

    if (!p)
        return EOPNOTSUPP;
    if (!caps)
        return EINVAL;
    p->query_caps(context, &all);
    memset(caps, 0, size);
    memcpy(caps, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

EXPORT struct ibv_mw *pumice_alloc_mw_ex(const struct pumice_mw_alloc_attr_ex *attr)
{
    const struct pumice_provider *p;

    if (!attr || !attr->pd || attr->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    p = provider(attr->pd->context);
    if (!p) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    return p->alloc_mw(attr);
}

EXPORT int pumice_mw_get_descriptor_num(const struct ibv_mw *mw, uint32_t *descriptor_num)
{
    const struct pumice_provider *p = mw ? provider(mw->context) : NULL;

    if (!p)
        return EOPNOTSUPP;
    *descriptor_num = p->mw_descriptors(mw);
    return 0;
}

EXPORT int pumice_mw_get_lkey(const struct ibv_mw *mw, uint32_t *lkey)
{
    const struct pumice_provider *p = mw ? provider(mw->context) : NULL;

    if (!p)
        return EOPNOTSUPP;
    if (p->mw_descriptors(mw) == 0)
        return EINVAL;
    *lkey = p->mw_lkey(mw);
    return 0;
}

EXPORT int pumice_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct pumice_mw_bind *bind)
{
    const struct pumice_provider *p = qp ? provider(qp->context) : NULL;

    if (!p || !mw || mw->context != qp->context)
        return !mw ? EINVAL : EOPNOTSUPP;
    return p->bind_mw(qp, mw, bind);
}

EXPORT const char *pumice_layout_strerror(uint32_t vendor_err)
{
    return layout_error_text(vendor_err);
}
