// SPDX-License-Identifier: BSD-2-Clause
/* The message that rdma_cm is missing. A program gets it that looked for rdma_cm, failed, and connected no QP. Programs
 * that only look for rdma_cm, as UCX and libfabric do in every rank of an MPI job, don't get it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "tests/verbs/vt.h"

#define FILE_NAME "/dev/infiniband/rdma_cm"
#define RXD "verbs;ofi_rxd"
#define RXM "verbs;ofi_rxm"

/* How a program ends that has looked for rdma_cm. */
enum end {
    END_WELL,
    END_WELL_CHILD_BADLY, /* a child without exec fails, which has not looked itself */
    END_BADLY,
    END_BADLY_CONNECTED, /* after it connected a QP */
    ENDS,
};

static const char *const ends[ENDS] = {"ends well", "ends well, its child fails", "fails", "connects a QP and fails"};

/* When the message comes. */
enum message {
    NEVER,
    IF_IT_FAILS, /* without a connected QP */
    ALWAYS,
};

struct look {
    const char *what;
    const char *env[3]; /* NAME=VALUE */
    const char *argument; /* of the program; "ucx": it loads UCX */
    enum message message;
};

static const struct look looks[] = {
    {"any program", {NULL}, NULL, IF_IT_FAILS},
    {"a program under UCX", {NULL}, "ucx", NEVER},
    {"a rank of Open MPI", {"OMPI_COMM_WORLD_RANK=0"}, NULL, NEVER},
    {"a rank of MPICH", {"PMI_RANK=0", "MPI_LOCALRANKID=0"}, NULL, NEVER},
    {"a rank by PMIx", {"PMIX_RANK=3", "SLURM_LOCALID=1"}, NULL, NEVER},
    {"any program under srun", {"SLURM_LOCALID=0", "SLURM_PROCID=0"}, NULL, IF_IT_FAILS},
    {"a rank that takes verbs", {"PMI_RANK=0", "FI_PROVIDER=verbs"}, NULL, IF_IT_FAILS},
    {"a rank that takes " RXM, {"PMI_RANK=0", "FI_PROVIDER=" RXM}, NULL, ALWAYS},
    {"a rank that takes ofi_rxm", {"PMI_RANK=0", "FI_PROVIDER=ofi_rxm"}, NULL, IF_IT_FAILS},
    {"a rank of Open MPI that does",
     {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_mtl_ofi_provider_include=" RXM},
     NULL,
     ALWAYS},
    {"a rank that takes it, and has loaded UCX", {"PMI_RANK=0", "FI_PROVIDER=" RXM}, "ucx", ALWAYS},
    {"a rank that takes verbs, and has loaded UCX", {"PMI_RANK=0", "FI_PROVIDER=verbs"}, "ucx", IF_IT_FAILS},
    {"a rank that takes either", {"PMI_RANK=0", "FI_PROVIDER=verbs,ofi_rxd,ofi_rxm"}, NULL, IF_IT_FAILS},
    {"a rank that takes " RXD, {"PMI_RANK=0", "FI_PROVIDER=" RXD}, NULL, NEVER},
    {"a rank that takes tcp;ofi_rxm", {"PMI_RANK=0", "FI_PROVIDER=tcp;ofi_rxm"}, NULL, NEVER},
    {"a rank that does not take verbs", {"PMI_RANK=0", "FI_PROVIDER=^verbs"}, NULL, NEVER},
    {"a rank that takes btl openib", {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_btl=self,openib"}, NULL, ALWAYS},
    {"a rank that does not", {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_btl=^openib"}, NULL, NEVER},
    {"a program that takes " RXD, {"FI_PROVIDER=" RXD}, NULL, NEVER},
    {"a program with " RXD " among its arguments", {NULL}, RXD, NEVER},
    {"a program with " RXM " among its arguments", {NULL}, RXM, IF_IT_FAILS},
};

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",     "MPI_LOCALRANKID", "PMIX_RANK",
                                        "SLURM_LOCALID",        "SLURM_PROCID", "FI_PROVIDER",     "OMPI_MCA_btl"};

static int exit_code(enum end end)
{
    return end >= END_BADLY ? 1 : 0;
}

/* The program itself: looks three times. Its exit code is 77 without UCX, and 9 if it can't do its work. */
static int look(enum end end, const char *argument)
{
    if (strcmp(argument, "ucx") == 0 && !dlopen("libuct.so.0", RTLD_NOW))
        return 77;
    for (int i = 0; i < 3; i++) {
        errno = 0;
        if (open(FILE_NAME, O_RDWR | O_CLOEXEC) >= 0 || errno != ENOENT)
            return 9;
    }
    if (end == END_WELL_CHILD_BADLY) {
        pid_t child = fork();
        if (child == 0)
            exit(1);
        return waitpid(child, NULL, 0) == child ? 0 : 9;
    }
    if (end == END_BADLY_CONNECTED) {
        struct vt_pair p = {0};
        vt_pair_make(&p, vt_open(), NULL);
        vt_connect(&p);
    }
    return exit_code(end);
}

static void start(const struct look *l, enum end end, int errors)
{
    const char number[] = {(char)('0' + end), 0};
    for (int i = 0; i < 3 && l->env[i]; i++) {
        char *name = strdup(l->env[i]), *value = strchr(name, '=');
        *value = 0;
        setenv(name, value + 1, 1);
    }
    dup2(errors, 2);
    execl("/proc/self/exe", "test_rdma_cm", "look", number, l->argument ? l->argument : "", NULL);
    _exit(9);
}

static void one(const struct look *l, enum end end)
{
    char text[1024] = "", what[128];
    int pipes[2], status = -1, lines = 0;
    bool told = l->message == ALWAYS || (l->message == IF_IT_FAILS && end == END_BADLY);
    need(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0)
        start(l, end, pipes[1]);
    close(pipes[1]);
    for (ssize_t n, at = 0; (n = read(pipes[0], text + at, sizeof(text) - 1 - (size_t)at)) > 0;)
        at += n;
    close(pipes[0]);
    need(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        printf("# %s: there is no UCX here\n", l->what);
        return;
    }
    for (const char *p = text; (p = strstr(p, "pumice: rdma_cm")) != NULL; p++)
        lines++;
    snprintf(what, sizeof(what), "%s %s", l->what, ends[end]);
    if (!ok(WEXITSTATUS(status) == exit_code(end) && lines == told, what))
        printf("# exit code %d: %s\n", WEXITSTATUS(status), text);
}

int main(int argc, char **argv)
{
    VT_OWN("the hint about rdma_cm");
    if (argc > 3)
        return look((enum end)(argv[2][0] - '0'), argv[3]);
    ibv_close_device(vt_open());
    if (access(FILE_NAME, F_OK) == 0) {
        printf("skip - the kernel has rdma_cm\n");
        return 77;
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
        for (enum end end = 0; end < ENDS; end++)
            one(&looks[i], end);
    setenv("PUMICE_SOCKET", "/no/such/socket", 1);
    unsetenv("PUMICE_LAB");
    one(&(struct look){"without a daemon, a program", {NULL}, NULL, NEVER}, END_BADLY);
    return vt_failed;
}
