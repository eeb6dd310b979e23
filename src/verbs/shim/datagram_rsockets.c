// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/datagram_rsockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"
#include "src/verbs/base/caller.h"
#include "src/verbs/shim/interface_addresses.h"
#include "src/verbs/shim/libc_next.h"

bool vb_datagram_rsockets(void)
{
    const char *v = getenv(PM_ENV_DATAGRAM_RSOCKETS);
    return v && strcmp(v, "1") == 0;
}

/* Is fd an IPv4 socket of UDP without a source address? *at becomes its address, which has its port, if it has one. */
static bool needs_source(int fd, struct sockaddr_in *at)
{
    int type;
    socklen_t len = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_DGRAM)
        return false;
    len = sizeof(*at);
    return getsockname(fd, (struct sockaddr *)at, &len) == 0 && at->sin_family == AF_INET &&
           at->sin_addr.s_addr == INADDR_ANY;
}

static bool is_loopback(const struct sockaddr *to, socklen_t len)
{
    return len >= sizeof(struct sockaddr_in) && to->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)to)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Binds fd to the first address that a device of this host has on the loopback interface. If there is none, or if it has
 * no such port, the kernel chooses as ever. */
static void bind_to_device(int fd, struct sockaddr_in *at)
{
    if (vb_loopback_device_address(&at->sin_addr))
        (void)bind(fd, (struct sockaddr *)at, sizeof(*at));
}

VB_EXPORT int connect(int fd, const struct sockaddr *to, socklen_t len)
{
    struct sockaddr_in at;
    if (vb_datagram_rsockets() && vb_called_by_librdmacm(__builtin_return_address(0)) && needs_source(fd, &at) &&
        is_loopback(to, len)) {
        int e = errno;
        bind_to_device(fd, &at);
        errno = e;
    }
    return VB_NEXT(connect)(fd, to, len);
}
