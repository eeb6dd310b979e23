// SPDX-License-Identifier: BSD-2-Clause
/* The message that rdma_cm is missing. Programs that can't go on without rdma_cm get it. Programs that only look for
 * rdma_cm, as UCX and libfabric do in every rank of an MPI job, don't. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "tests/verbs/vt.h"

#define FILE_NAME "/dev/infiniband/rdma_cm"
#define RXD "verbs;ofi_rxd"
#define RXM "verbs;ofi_rxm"

struct look {
    const char *what;
    const char *env[3]; /* NAME=VALUE */
    const char *argument; /* of the program; "ucx": it loads UCX */
    bool told;
};

static const struct look looks[] = {
    {"any program", {NULL}, NULL, true},
    {"a program under UCX", {NULL}, "ucx", false},
    {"a rank of Open MPI", {"OMPI_COMM_WORLD_RANK=0"}, NULL, false},
    {"a rank of MPICH", {"PMI_RANK=0", "MPI_LOCALRANKID=0"}, NULL, false},
    {"a rank by PMIx", {"PMIX_RANK=3", "SLURM_LOCALID=1"}, NULL, false},
    {"any program under srun", {"SLURM_LOCALID=0", "SLURM_PROCID=0"}, NULL, true},
    {"a rank that takes verbs", {"PMI_RANK=0", "FI_PROVIDER=verbs"}, NULL, true},
    {"a rank that takes " RXM, {"PMI_RANK=0", "FI_PROVIDER=" RXM}, NULL, true},
    {"a rank that takes ofi_rxm", {"PMI_RANK=0", "FI_PROVIDER=ofi_rxm"}, NULL, true},
    {"a rank of Open MPI that does", {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_mtl_ofi_provider_include=" RXM}, NULL, true},
    {"a rank that takes it, and has loaded UCX", {"PMI_RANK=0", "FI_PROVIDER=" RXM}, "ucx", true},
    {"a rank that takes either", {"PMI_RANK=0", "FI_PROVIDER=verbs,ofi_rxd,ofi_rxm"}, NULL, true},
    {"a rank that takes " RXD, {"PMI_RANK=0", "FI_PROVIDER=" RXD}, NULL, false},
    {"a rank that takes tcp;ofi_rxm", {"PMI_RANK=0", "FI_PROVIDER=tcp;ofi_rxm"}, NULL, false},
    {"a rank that does not take verbs", {"PMI_RANK=0", "FI_PROVIDER=^verbs"}, NULL, false},
    {"a rank that takes btl openib", {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_btl=self,openib"}, NULL, true},
    {"a rank that does not", {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_btl=^openib"}, NULL, false},
    {"a program that takes " RXD, {"FI_PROVIDER=" RXD}, NULL, false},
    {"a program with " RXD " among its arguments", {NULL}, RXD, false},
    {"a program with " RXM " among its arguments", {NULL}, RXM, true},
};

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",     "MPI_LOCALRANKID", "PMIX_RANK",
                                        "SLURM_LOCALID",        "SLURM_PROCID", "FI_PROVIDER",     "OMPI_MCA_btl"};

/* The program itself: looks three times. */
static int look(const char *argument)
{
    if (strcmp(argument, "ucx") == 0 && !dlopen("libuct.so.0", RTLD_NOW))
        return 77;
    for (int i = 0; i < 3; i++) {
        errno = 0;
        if (open(FILE_NAME, O_RDWR | O_CLOEXEC) >= 0 || errno != ENOENT)
            return 1;
    }
    return 0;
}

static void start(const struct look *l, int errors)
{
    for (int i = 0; i < 3 && l->env[i]; i++) {
        char *name = strdup(l->env[i]), *value = strchr(name, '=');
        *value = 0;
        setenv(name, value + 1, 1);
    }
    dup2(errors, 2);
    execl("/proc/self/exe", "test_rdma_cm", "look", l->argument ? l->argument : "", NULL);
    _exit(2);
}

static void one(const struct look *l)
{
    char text[1024] = "";
    int ends[2], status = -1, lines = 0;
    need(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0)
        start(l, ends[1]);
    close(ends[1]);
    for (ssize_t n, at = 0; (n = read(ends[0], text + at, sizeof(text) - 1 - (size_t)at)) > 0;)
        at += n;
    close(ends[0]);
    need(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        printf("# %s: there is no UCX here\n", l->what);
        return;
    }
    for (const char *p = text; (p = strstr(p, "pumice: rdma_cm")) != NULL; p++)
        lines++;
    if (!ok(WEXITSTATUS(status) == 0 && lines == (l->told ? 1 : 0), l->what))
        printf("# exit code %d: %s\n", WEXITSTATUS(status), text);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return look(argv[2]);
    ibv_close_device(vt_open());
    if (access(FILE_NAME, F_OK) == 0) {
        printf("skip - the kernel has rdma_cm\n");
        return 77;
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
        one(&looks[i]);
    setenv("PUMICE_SOCKET", "/no/such/socket", 1);
    unsetenv("PUMICE_LAB");
    one(&(struct look){"without a daemon", {NULL}, NULL, false});
    return vt_failed;
}
