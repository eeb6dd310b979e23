// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/run/net_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/targets.h"

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

void net_file_explain(const struct lab *lab)
{
    char path[SOCKET_PATH_MAX];
    json_t *status = NULL;

    if (targets_lab_socket(lab->dir, 0, path) == 0)
        status = control_fetch_quietly(path, PM_OP_STATUS, NULL, 0);
    const json_t *device = json_array_get(json_object_get(status, "devices"), 0);
    const char *ecn = json_string_value(json_object_get(device, "ecn"));
    json_int_t mark = json_integer_value(json_object_get(device, "net_first_mark"));
    json_int_t burst = json_integer_value(json_object_get(device, "rate_burst"));

    if (ecn && strcmp(ecn, "on") == 0 && mark && mark < burst)
        say("hint: --net: a link marks packets that %" JSON_INTEGER_FORMAT
            " bytes wait before, but a sender sends up to %" JSON_INTEGER_FORMAT
            " bytes together; so senders slow down although the link is free (docs/faults.md)",
            mark, burst);
    json_decref(status);
}
