// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/confinement.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/sandbox/sandbox.h"
#include "pumice/abi.h"

bool confinement_covers_devices(const struct settings *s)
{
    return s->memory == MEMORY_PROC_MEM || (s->memory == MEMORY_AUTO && s->group[0]);
}

void confinement_begin(const struct settings *s, const char *socket)
{
    static char tree[128]; /* the directory of sysfs_create */
    const char *notify = getenv("NOTIFY_SOCKET");
    const struct sandbox_config config = {
        .paths = {.socket = socket,
                  .tree = tree,
                  .append = s->path_check_map,
                  .config = s->config_file,
                  .abstract_sockets = notify && notify[0] == '@'},
        .landlock_devices = confinement_covers_devices(s),
    };

    if (s->sandbox_off)
        return;
    snprintf(tree, sizeof(tree), "%s" PM_SYSFS_SUFFIX, socket);
    sandbox_begin(&config);
}
