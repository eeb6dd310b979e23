// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/capture/discover.h"

#include <arpa/inet.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cmd/common/control.h"
#include "src/cmd/common/targets.h"
#include "src/cmd/lab/lab_dir.h"
#include "wire/gid.h"

typedef bool visit(const struct capture_interface *, void *arg);

/* Requests the list of devices from the daemon at path. Returns false if it does not answer. */
static bool list(const char *path, struct pm_list_rep *rep)
{
    struct control_call call = {.op = PM_OP_LIST, .rep = rep, .rep_len = sizeof(*rep)};
    int sock = control_open(path);

    if (sock < 0)
        return false;
    bool ok = control_call(sock, &call) == 0 && call.rep_len == sizeof(*rep) && rep->abi_version == PM_ABI_VERSION &&
              rep->num <= PM_DEVICES_MAX;
    close(sock);
    return ok;
}

static void address_text(const struct pm_device_desc *d, char out[INET6_ADDRSTRLEN])
{
    bool v4 = gid_is_v4(d->gid);

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? d->gid + 12 : d->gid, out, INET6_ADDRSTRLEN))
        out[0] = 0;
}

/* Calls `each` for each device of each daemon in t. */
static bool visit_devices(const struct targets *t, visit *each, void *arg)
{
    struct pm_list_rep rep;
    struct capture_interface p;
    char path[SOCKET_PATH_MAX], address[INET6_ADDRSTRLEN];

    for (unsigned i = 0; i < t->n; i++) {
        targets_socket(t, i, path);
        if (!list(path, &rep))
            continue;
        for (uint32_t k = 0; k < rep.num; k++) {
            memset(&p, 0, sizeof(p));
            snprintf(p.device, sizeof(p.device), "%.*s", PM_NAME_MAX - 1, rep.device[k].name);
            address_text(&rep.device[k], address);
            p.targets = *t;
            if (t->lab) {
                p.targets.n = 1;
                p.targets.first = t->first + (int)i;
                snprintf(p.name, sizeof(p.name), "host%u:%s", i, p.device);
                snprintf(p.about, sizeof(p.about), "Pumice: %s of host %u (%s)", p.device, i, address);
            } else {
                snprintf(p.name, sizeof(p.name), "%s", p.device);
                snprintf(p.about, sizeof(p.about), "Pumice: %s (%s)", p.device, address);
            }
            if (each(&p, arg))
                return true;
        }
    }
    return false;
}

/* Calls `each` for the lab in this directory, if the directory belongs to this user and host 0 answers. */
static bool visit_lab(const char *dir, visit *each, void *arg)
{
    struct capture_interface p = {0};
    struct stat st;
    char path[SOCKET_PATH_MAX];
    unsigned hosts = 0;

    if (strlen(dir) >= sizeof(p.dir) || lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
        return false;
    while (hosts < HOSTS_MAX && targets_lab_socket(dir, hosts, path) == 0 && access(path, F_OK) == 0)
        hosts++;
    int sock = hosts && targets_lab_socket(dir, 0, path) == 0 ? control_open(path) : -1;
    if (sock < 0) /* no lab, or a lab that was killed */
        return false;
    close(sock);
    strcpy(p.dir, dir);
    p.targets = (struct targets){.n = hosts, .first = 0, .lab = p.dir};
    snprintf(p.name, sizeof(p.name), "lab-%.16s", strrchr(dir, '-') + 1);
    snprintf(p.about, sizeof(p.about), "Pumice: all %u host%s of the lab %.16s", hosts, hosts > 1 ? "s" : "",
             strrchr(dir, '-') + 1);
    return each(&p, arg);
}

static bool visit_labs(const char *known, visit *each, void *arg)
{
    const char *parents[LAB_PARENT_DIRS];
    bool found = false;

    lab_parent_dirs(parents);
    for (unsigned i = 0; i < LAB_PARENT_DIRS && !found; i++) {
        char pattern[PATH_MAX];
        glob_t g = {0};
        bool again = false;

        for (unsigned k = 0; k < i; k++)
            again |= parents[k] && parents[i] && strcmp(parents[k], parents[i]) == 0;
        if (!parents[i] || again ||
            snprintf(pattern, sizeof(pattern), "%s/" LAB_PREFIX "??????", parents[i]) >= (int)sizeof(pattern))
            continue;
        if (glob(pattern, 0, NULL, &g) == 0)
            for (size_t k = 0; k < g.gl_pathc && !found; k++)
                if (!known || strcmp(known, g.gl_pathv[k]) != 0)
                    found = visit_lab(g.gl_pathv[k], each, arg);
        globfree(&g);
    }
    return found;
}

bool discover(visit *each, void *arg)
{
    struct capture_interface all = {.name = DISCOVER_ALL};
    bool reachable = targets_find(&all.targets, NULL, -1) == 0;

    if (reachable) {
        if (all.targets.lab)
            snprintf(all.about, sizeof(all.about), "Pumice: all %u hosts of this lab", all.targets.n);
        else
            snprintf(all.about, sizeof(all.about), "Pumice: all devices");
        if (each(&all, arg) || visit_devices(&all.targets, each, arg))
            return true;
    }
    return visit_labs(reachable ? all.targets.lab : NULL, each, arg);
}
