// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/capacity.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/cm/cm_thread.h"
#include "daemon/device/device.h"

#define CONNECTIONS_MAX 1024u
/* Each pass of a loop looks at all sessions of its device, so more of them would slow down everybody. */
#define SESSIONS_MAX 2048u

/* Reserves. The daemon needs descriptors for the documents of pumice status, for captures, to accept connections, for
 * connections that it refuses, and for those that a message brings (253 at most) until it has looked at them; mappings
 * for the same documents, captures, threads and malloc. */
#define DESCRIPTORS_RESERVED (2 * CAPACITY_REFUSED + 64u + 256u)
#define MAPPINGS_RESERVED 512u

/* The amount that clients may have if the daemon has used this much. At least half of a small limit is theirs. */
static uint64_t rest(uint64_t limit, uint64_t used)
{
    return used < limit / 2 ? limit - used : limit / 2;
}

static uint64_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static uint64_t descriptors(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return UINT32_MAX;
    return rest(r.rlim_cur, open_files() + DESCRIPTORS_RESERVED);
}

static uint64_t mapped(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    uint64_t n = 0;
    int c;

    while (f && (c = getc(f)) != EOF)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}

static uint64_t mappings(void)
{
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    unsigned long limit;

    if (!f || fscanf(f, "%lu", &limit) != 1)
        limit = 65530; /* the kernel's default */
    if (f)
        fclose(f);
    return rest(limit, mapped() + MAPPINGS_RESERVED);
}

void capacity_read(uint64_t capacity[QUOTA_KINDS])
{
    capacity[QUOTA_SESSIONS] = SESSIONS_MAX;
    capacity[QUOTA_CONNECTIONS] = CONNECTIONS_MAX;
    capacity[QUOTA_PDS] = DEVICE_MAX_PD;
    capacity[QUOTA_QPS] = DEVICE_MAX_QP;
    capacity[QUOTA_SRQS] = DEVICE_MAX_SRQ;
    capacity[QUOTA_MRS] = DEVICE_MAX_MR;
    capacity[QUOTA_MWS] = DEVICE_MAX_MW;
    capacity[QUOTA_XRCDS] = DEVICE_MAX_XRCD;
    capacity[QUOTA_GROUPS] = DEVICE_MAX_MCAST_GRP;
    capacity[QUOTA_CM_IDS] = CM_IDS_MAX;
    capacity[QUOTA_DESCRIPTORS] = capacity[QUOTA_CHANNELS] = descriptors();
    capacity[QUOTA_CM_CONNECTIONS] = capacity[QUOTA_CM_CHANNELS] = capacity[QUOTA_DESCRIPTORS];
    capacity[QUOTA_MAPPINGS] = capacity[QUOTA_CQS] = mappings();
    capacity[QUOTA_BYTES] = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}
