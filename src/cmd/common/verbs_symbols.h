// SPDX-License-Identifier: BSD-2-Clause
/* Compares the symbols that programs and libraries import from libibverbs.so.1 with those of Pumice's client library.
 * rdma-core adds symbols and versions with its releases. A program or a provider library of a later release than the
 * client library knows can't be loaded. */
#ifndef PUMICE_SRC_CMD_COMMON_VERBS_SYMBOLS_H
#define PUMICE_SRC_CMD_COMMON_VERBS_SYMBOLS_H

#include <limits.h>
#include <stdbool.h>

#include "src/cmd/common/elf_symbols.h"

struct verbs_missing {
    char file[PATH_MAX]; /* the file that imports the symbols */
    char symbol[160]; /* the first of them: "ibv_x of IBVERBS_Y", or "version IBVERBS_Y" */
    unsigned n; /* number of symbols and versions */
};

/* Reads the symbols of the client library. Returns 0 or -errno; if there is no client library, prints where it was
 * searched. The caller frees the list. */
int verbs_symbols_ours(struct elf_symbols *ours);

/* Writes the newest public and the newest private version of the client library: "IBVERBS_1.X and IBVERBS_PRIVATE_Y". */
void verbs_symbols_newest(const struct elf_symbols *ours, char *out, size_t size);

/* Compares what one file imports. Returns 1 and fills *missing if symbols are missing, 0 if none is, or -errno. */
int verbs_symbols_check(const struct elf_symbols *ours, const char *path, struct verbs_missing *missing);

/* The same for a file and all libraries that the loader would load with it. The first file that lacks symbols is
 * reported. */
int verbs_symbols_check_all(const struct elf_symbols *ours, const char *path, struct verbs_missing *missing);

/* Calls use for each provider library (libmlx5 and others) that is installed below root, by its real path. */
void verbs_symbols_providers(const char *root, void (*use)(void *closure, const char *path), void *closure);

/* Calls use for each librdmacm.so.1 that is installed below root, by its real path. */
void verbs_symbols_rdmacm(const char *root, void (*use)(void *closure, const char *path), void *closure);

/* Finds UCX's transports over verbs, a module that UCX loads if it can, and compares the symbols of the module and of
 * its libraries. Returns as verbs_symbols_check; 0 also if UCX is not installed. */
int verbs_symbols_check_ucx(const struct elf_symbols *ours, const char *root, struct verbs_missing *missing);

#endif
