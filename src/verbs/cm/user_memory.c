// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/user_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Did the kernel copy? 1: yes. 0: it may not, because of a filter of system calls, for example. -EFAULT: an address is
 * not mapped. */
static int result(ssize_t copied, size_t len)
{
    if (copied == (ssize_t)len)
        return 1;
    return copied >= 0 || errno == EFAULT ? -EFAULT : 0;
}

int vb_user_read(void *to, uint64_t from, size_t len)
{
    struct iovec own = {to, len}, other = {(void *)(uintptr_t)from, len};
    if (len == 0)
        return 0;
    int rc = result(process_vm_readv(getpid(), &own, 1, &other, 1, 0), len);
    if (rc == 0)
        memcpy(to, other.iov_base, len);
    return rc < 0 ? rc : 0;
}

int vb_user_write(uint64_t to, const void *from, size_t len)
{
    struct iovec own = {(void *)from, len}, other = {(void *)(uintptr_t)to, len};
    if (len == 0)
        return 0;
    int rc = result(process_vm_writev(getpid(), &own, 1, &other, 1, 0), len);
    if (rc == 0)
        memcpy(other.iov_base, from, len);
    return rc < 0 ? rc : 0;
}
