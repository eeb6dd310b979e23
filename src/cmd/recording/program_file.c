// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/recording/program_file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/cmd/common/paths.h"

static void hash_file(const char *path, char out[40])
{
    FILE *f = fopen(path, "r");
    XXH64_state_t *state = XXH64_createState();
    char block[65536];
    size_t n;

    out[0] = 0;
    if (f && state && XXH64_reset(state, 0) == XXH_OK) {
        while ((n = fread(block, 1, sizeof(block), f)) > 0)
            XXH64_update(state, block, n);
        if (!ferror(f))
            snprintf(out, 40, "xxh64:%016" PRIx64, (uint64_t)XXH64_digest(state));
    }
    XXH64_freeState(state);
    if (f)
        fclose(f);
}

json_t *program_file_describe(const char *command)
{
    char path[PATH_MAX] = "", hash[40] = "";

    if (paths_command(command, path) == 0)
        hash_file(path, hash);
    return json_pack("{s:s, s:s}", "path", path, "hash", hash);
}
