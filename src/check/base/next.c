// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/next.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(const char *name)
{
    static const char *const libraries[] = {"libibverbs.so.1", "librdmacm.so.1"};
    void *fn = dlsym(RTLD_NEXT, name);

    for (unsigned i = 0; i < 2 && !fn; i++) { /* the library was loaded for one module of the program only */
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

        fn = library ? dlsym(library, name) : NULL;
    }
    return fn;
}

bool next_has(const char *name)
{
    return find(name) != NULL;
}

void *next_find(const char *name)
{
    void *fn = find(name);

    if (!fn) {
        fprintf(stderr, "pumice check: no verbs library has %s: %s\n", name, dlerror());
        abort();
    }
    return fn;
}
