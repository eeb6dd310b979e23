// SPDX-License-Identifier: BSD-2-Clause
/* Reads the status of a daemon by `pumice status --json`. For programs that run with daemons of their own
 * (tests/verbs/run.sh). */
#ifndef PUMICE_TESTS_VERBS_DAEMON_STATUS_H
#define PUMICE_TESTS_VERBS_DAEMON_STATUS_H

#include <infiniband/verbs.h>
#include <sys/utsname.h>

#include "tests/verbs/check.h"

/* Starts `pumice COMMAND` for the daemon with this control socket. The caller reads the output and calls pclose. */
static inline FILE *vt_pumice(const char *socket, const char *command)
{
    char line[768];
    const char *build = getenv("VT_BUILD");
    need(build && snprintf(line, sizeof(line), "env -u LD_PRELOAD %s/bin/pumice %s --socket %s", build, command,
                           socket) < (int)sizeof(line));
    FILE *f = popen(line, "r");
    need(f);
    return f;
}

/* A counter of the device: of its section "counters". */
static inline long vt_counter(const char *socket, const char *name)
{
    char line[512], field[64];
    long value = -1;
    bool devices = false, section = false;
    snprintf(field, sizeof(field), "\"%s\": ", name);
    FILE *f = vt_pumice(socket, "status --json");
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, field);
        devices |= strstr(line, " \"devices\": [") != NULL;
        if (strstr(line, "counters\": {"))
            section = devices && strstr(line, " \"counters\": {");
        if (section && at && value < 0)
            value = atol(at + strlen(field));
    }
    need(pclose(f) == 0 && value >= 0);
    return value;
}

/* Does the daemon say that it has mapped the region? */
static inline bool vt_is_mapped(const char *socket, const struct ibv_mr *mr)
{
    char line[512];
    unsigned key;
    bool here = false, found = false, mapped = false;
    FILE *f = vt_pumice(socket, "status --json --only mrs");
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "\"key\": ");
        if (at && sscanf(at, "\"key\": %u", &key) == 1)
            here = key == mr->lkey;
        if (here && (at = strstr(line, "\"mapped\": "))) {
            found = true;
            mapped = strstr(at, "true") != NULL;
        }
    }
    need(pclose(f) == 0 && found);
    return mapped;
}

/* The daemon maps files only if the kernel tells the file of a mapping. */
static inline bool vt_kernel_tells_mappings(void)
{
    struct utsname u;
    int major = 0, minor = 0;
    need(uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2);
    if (major > 6 || (major == 6 && minor >= 11))
        return true;
    printf("# Linux %s does not tell the file of a mapping, so the daemon maps none\n", u.release);
    return false;
}

#endif
