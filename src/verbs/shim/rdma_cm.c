// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/rdma_cm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/verbs/session/session_path.h"

/* Variables that list providers of libfabric: its own one, and those of Open MPI, MPICH and Intel MPI. */
static const char *const provider_lists[] = {"FI_PROVIDER", "OMPI_MCA_mtl_ofi_provider_include",
                                             "OMPI_MCA_btl_ofi_provider_include", "MPIR_CVAR_OFI_USE_PROVIDER",
                                             "I_MPI_OFI_PROVIDER"};

/* The providers that the variable selects. "" if it is not set, or if it excludes providers ("^…"). */
static const char *chosen(const char *variable)
{
    const char *list = getenv(variable);
    return list && list[0] != '^' ? list : "";
}

static atomic_int looked; /* process that looked for rdma_cm; a child after fork has the value of its parent */
static atomic_bool connected; /* a QP of this process became ready to receive */
static atomic_flag hinted = ATOMIC_FLAG_INIT;

/* Do these providers need rdma_cm? Reliable datagrams (verbs;ofi_rxd) do not. Message endpoints (verbs alone,
 * verbs;ofi_rxm) do. */
static bool needs_it(const char *providers)
{
    if (strstr(providers, "verbs"))
        return strstr(providers, "ofi_rxm") || !strstr(providers, "ofi_rxd");
    return strcmp(providers, "ofi_rxm") == 0; /* over any provider that works */
}

/* Does the environment ask for a library that needs rdma_cm? */
static bool wanted(void)
{
    for (size_t i = 0; i < sizeof(provider_lists) / sizeof(provider_lists[0]); i++)
        if (needs_it(chosen(provider_lists[i])))
            return true;
    return strstr(chosen("OMPI_MCA_btl"), "openib");
}

/* Does the environment select a library that always needs rdma_cm? */
static bool insisted(void)
{
    for (size_t i = 0; i < sizeof(provider_lists) / sizeof(provider_lists[0]); i++)
        if (strcmp(chosen(provider_lists[i]), "verbs;ofi_rxm") == 0)
            return true;
    return strstr(chosen("OMPI_MCA_btl"), "openib");
}

/* Does an argument of the program contain that name? Reads the first 4096 bytes of the command line. */
static bool argument(const char *what)
{
    char line[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof(line));
    if (fd >= 0)
        close(fd);
    return n > 0 && memmem(line, (size_t)n, what, strlen(what));
}

/* Are reliable datagrams selected already? Then the hint would be no help. */
static bool datagrams(void)
{
    for (size_t i = 0; i < sizeof(provider_lists) / sizeof(provider_lists[0]); i++)
        if (strstr(chosen(provider_lists[i]), "ofi_rxd"))
            return true;
    return argument("ofi_rxd");
}

static bool has_ucx(void)
{
    void *ucx = dlopen("libuct.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (ucx)
        dlclose(ucx);
    return ucx != NULL;
}

/* Is it likely that this process fails for rdma_cm, if it fails? */
static bool is_likely(void)
{
    return wanted() || (!vb_session_is_rank() && !has_ucx() && !datagrams());
}

static void hint(void)
{
    static const char text[] = "pumice: rdma_cm (connection management) is not available: use out-of-band connections "
                               "(perftest without -R, libfabric's verbs;ofi_rxd, MPIs over UCX)\n";
    if (!atomic_flag_test_and_set(&hinted))
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

/* Runs when the process, or a child of it without exec, ends by exit(3). */
static void at_exit(int status, void *unused)
{
    (void)unused;
    if ((status & 0xff) != 0 && atomic_load(&looked) == getpid() && !atomic_load(&connected) && is_likely())
        hint();
}

void vb_rdma_cm_absent(void)
{
    int e = errno, self = getpid();
    if (atomic_exchange(&looked, self) != self) {
        if (insisted())
            hint();
        else if (is_likely())
            on_exit(at_exit, NULL);
    }
    errno = e;
}

void vb_rdma_cm_unneeded(void)
{
    atomic_store(&connected, true);
}
