// SPDX-License-Identifier: BSD-2-Clause
/* Asks the loader which libraries a program or library would load. No code of the file runs. */
#ifndef PUMICE_SRC_CMD_COMMON_LOADED_LIBRARIES_H
#define PUMICE_SRC_CMD_COMMON_LOADED_LIBRARIES_H

/* Calls use for each library that the loader would load with the ELF file at path, itself apart: with the library's
 * path, or with NULL if the loader does not find it, and with its soname. Libraries that LD_PRELOAD names are left out.
 * Returns 0 or -errno: -ENOEXEC if the loader can't load the file. */
int loaded_libraries(const char *path, void (*use)(void *closure, const char *soname, const char *library),
                     void *closure);

#endif
