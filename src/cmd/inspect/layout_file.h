// SPDX-License-Identifier: BSD-2-Clause
/* Reads layout descriptions from JSON files, for `pumice layout`. docs/man/pumice-layout.1 describes the format. */
#ifndef PUMICE_SRC_CMD_INSPECT_LAYOUT_FILE_H
#define PUMICE_SRC_CMD_INSPECT_LAYOUT_FILE_H

#include <stdint.h>

#include "daemon/core/memory/layout.h"

struct file_region { /* a memory region */
    char *name;
    uint64_t addr, length;
};
struct file_window { /* a window with a layout */
    char *name;
    uint8_t depth; /* levels of layouts, including this one */
    struct layout_desc desc;
    /* [desc.count]; object is the index of a region, or WINDOW_BIT plus the index of a window. */
    struct layout_entry_desc *entry;
    struct layout layout;
    struct layout_entry *bound; /* [desc.count] */
};
#define WINDOW_BIT 0x80000000u

struct layout_file {
    struct file_region *region;
    struct file_window *window; /* in the order of the file; an entry can only name earlier windows */
    uint32_t regions, windows;
};

/* Reads a file ("-": stdin) and binds all its windows with the engine's code. Returns 0, or -1 after printing an error.
 * In both cases the caller calls layout_file_free. */
int layout_file_read(struct layout_file *f, const char *path);
void layout_file_free(struct layout_file *f);

/* The last window with this name, or the last window of all if name is NULL. Returns NULL if there is none. */
const struct file_window *layout_file_window(const struct layout_file *f, const char *name);
/* The name of the region or window that an entry describes. */
const char *layout_file_object(const struct layout_file *f, uint32_t object);

#endif
