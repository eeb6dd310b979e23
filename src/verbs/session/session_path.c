// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/session_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pumice/abi.h"

/* The local rank of this process among those of its launcher, or -1 if it has none. */
static long launcher_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK",
                                        "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return strtol(v, NULL, 10);
    }
    return -1;
}

/* Variables of SLURM don't count, because srun sets them for every program. It sets those of PMI and PMIx only for the
 * ranks of an MPI job. */
bool vb_session_is_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return true;
    }
    return false;
}

/* The number of the host of the lab that this process is on (PM_ENV_HOST). */
static long lab_host(void)
{
    const char *host = getenv(PM_ENV_HOST);
    if (host && *host)
        return strtol(host, NULL, 10);
    const char *hosts = getenv(PM_ENV_HOSTS);
    long n = hosts ? strtol(hosts, NULL, 10) : 1, rank = launcher_rank();
    return n > 0 && rank > 0 ? rank % n : 0;
}

long vb_session_rank_on_host(void)
{
    const char *host = getenv(PM_ENV_HOST), *hosts = getenv(PM_ENV_LAB) ? getenv(PM_ENV_HOSTS) : NULL;
    long rank = launcher_rank(), n = hosts && !(host && *host) ? strtol(hosts, NULL, 10) : 1;
    return n > 0 && rank > 0 ? rank / n : rank;
}

/* Does the directory in /tmp belong to this user alone? Any user can make a directory of that name. */
static bool own_directory(const char *dir)
{
    struct stat st;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* The first default place of the daemon that has a socket, or the first default place if none has one. Returns the
 * length of the path, as snprintf does. */
static int default_path(char *path, size_t size)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    char tmp[32];
    snprintf(tmp, sizeof(tmp), "/tmp/pumice-%u", (unsigned)geteuid());
    bool has_run = run && *run;
    if (has_run) {
        int n = snprintf(path, size, "%s/pumice/" PM_SOCKET_NAME, run);
        if (n < 0 || (size_t)n >= size || access(path, F_OK) == 0)
            return n;
    }
    if (access("/run/pumice/" PM_SOCKET_NAME, F_OK) != 0) {
        int n = snprintf(path, size, "%s/" PM_SOCKET_NAME, tmp);
        if (own_directory(tmp) && access(path, F_OK) == 0)
            return n;
        if (has_run)
            return snprintf(path, size, "%s/pumice/" PM_SOCKET_NAME, run);
    }
    return snprintf(path, size, "/run/pumice/" PM_SOCKET_NAME);
}

int vb_session_path(char *path, size_t size)
{
    const char *lab = getenv(PM_ENV_LAB), *socket_path = getenv(PM_ENV_SOCKET);
    int n;
    if (lab && *lab)
        n = snprintf(path, size, "%s/host%ld.sock", lab, lab_host());
    else if (socket_path && *socket_path)
        n = snprintf(path, size, "%s", socket_path);
    else
        n = default_path(path, size);
    return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}
