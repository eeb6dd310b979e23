// SPDX-License-Identifier: BSD-2-Clause
/* Reads from ELF files which symbols of a shared library they define or import, by version (libelf). */
#ifndef PUMICE_SRC_CMD_COMMON_ELF_SYMBOLS_H
#define PUMICE_SRC_CMD_COMMON_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

struct elf_symbol {
    char *name; /* "": no symbol, but the version itself */
    char *version;
};

/* A list of symbols. One of zeros is empty. */
struct elf_symbols {
    struct elf_symbol *symbol;
    size_t n;
};

/* These functions append to a list and sort it by name and version. They return 0 or -errno: -ENOEXEC if the file is no
 * ELF file. The symbols of versions that no list of versions in the file names are left out. */

/* The symbols that the library at path defines, and its versions. */
int elf_symbols_defined(const char *path, struct elf_symbols *list);
/* The symbols that the file at path imports from the library with this soname, and the versions of that library that it
 * needs. Weak symbols are left out, because the loader does not insist on them. */
int elf_symbols_imported(const char *path, const char *soname, struct elf_symbols *list);

/* Whether a sorted list has this symbol. */
bool elf_symbols_have(const struct elf_symbols *list, const struct elf_symbol *symbol);

void elf_symbols_free(struct elf_symbols *list);

#endif
