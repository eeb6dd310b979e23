// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/rdma_cm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

void vb_rdma_cm_hint(void)
{
    static bool hinted;
    static const char text[] = "pumice: rdma_cm (connection management) is not available: use out-of-band connections "
                               "(perftest without -R, libfabric's verbs;ofi_rxd, MPIs over UCX)\n";
    int e = errno;
    if ((wanted() || (!vb_session_is_rank() && !has_ucx() && !datagrams())) &&
        !__atomic_test_and_set(&hinted, __ATOMIC_RELAXED))
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    errno = e;
}
