// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/next.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *next_find(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);

    if (!fn) { /* the library was loaded for one module of the program only */
        void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

        fn = library ? dlsym(library, name) : NULL;
    }
    if (!fn) {
        fprintf(stderr, "pumice check: no verbs library has %s: %s\n", name, dlerror());
        abort();
    }
    return fn;
}
