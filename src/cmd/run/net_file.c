// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/run/net_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/common/cmd.h"

const char *net_file_read(const char *file)
{
    static char text[1u << 19];
    FILE *f = fopen(file, "re");
    size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    bool right = f && !ferror(f) && len < sizeof(text) - 1 && !memchr(text, 0, len);

    if (!right)
        say("--net: can't read %s: %s", file, f && !ferror(f) ? "it is no text, or too long" : strerror(errno));
    if (f)
        fclose(f);
    text[len] = 0;
    return right ? text : NULL;
}
