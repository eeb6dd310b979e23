// SPDX-License-Identifier: BSD-2-Clause
/* Layout descriptions in files (JSON), for `pumice layout`. docs/man/pumice-layout.1 describes the form. */
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
    uint8_t depth; /* of layouts, itself included */
    struct layout_desc desc;
    struct layout_entry_desc *entry; /* [desc.count]; object: a region's index, or WINDOW_BIT and a window's */
    struct layout layout;
    struct layout_entry *bound; /* [desc.count] */
};
#define WINDOW_BIT 0x80000000u

struct layout_file {
    struct file_region *region;
    struct file_window *window; /* an entry can only name windows before its own */
    uint32_t regions, windows;
};

/* Reads a file ("-": stdin) and binds all its windows, by the engine's own rules. 0; -1 if that can't be done, and the
 * reason was said on stderr. In both cases, layout_file_free gives back what was allocated. */
int layout_file_read(struct layout_file *f, const char *path);
void layout_file_free(struct layout_file *f);

/* The last window of this name, or the last of all if it is NULL; NULL: there is none. */
const struct file_window *layout_file_window(const struct layout_file *f, const char *name);
/* The name of what an entry is about. */
const char *layout_file_object(const struct layout_file *f, uint32_t object);

#endif
