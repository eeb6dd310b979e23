// SPDX-License-Identifier: BSD-2-Clause
/* Memory whose pages come from a server (daemon/client_mem/served_memory.h). */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/client_mem/served_memory.h"

#define BYTES (1u << 16)

static const char mounts[] = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
                             "23 22 0:21 / /dev/shm rw shared:2 - tmpfs tmpfs rw\n"
                             "24 22 0:40 / /home/a\\040b rw master:7 propagate_from:2 - fuse.sshfs host: rw\n"
                             "25 22 0:41 /x /net rw - nfs4 server:/x rw,vers=4.2\n"
                             "26 22 0:42 /sub / rw - btrfs /dev/vdb rw\n"
                             "27 22 8:17 / /usb rw - fuseblk /dev/sdb1 rw\n"
                             "28 22 0:43 / /odd rw - tmpfsx none rw\n";

Test(served_memory, file_systems)
{
    cr_expect(!device_is_served(mounts, 254, 1), "a block device");
    cr_expect(!device_is_served(mounts, 8, 1), "a block device that is not mounted here");
    cr_expect(!device_is_served(mounts, 0, 21), "tmpfs");
    cr_expect(device_is_served(mounts, 0, 40), "FUSE");
    cr_expect(device_is_served(mounts, 0, 41), "NFS");
    cr_expect(!device_is_served(mounts, 0, 42), "btrfs hides its disks");
    cr_expect(device_is_served(mounts, 8, 17), "FUSE on a block device");
    cr_expect(device_is_served(mounts, 0, 43), "a type whose name begins like a known one");
    cr_expect(device_is_served(mounts, 0, 99), "a mount of a container");
    cr_expect(device_is_served("", 0, 21), "unknown mounts");
}

static void *map(int fd, int flags)
{
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

    cr_assert_neq(p, MAP_FAILED);
    return p;
}

Test(served_memory, memory_of_a_process)
{
    int memfd = memfd_create("test", MFD_CLOEXEC), maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), text[2];
    struct iovec v[3] = {{malloc(100), 100}};

    cr_assert(memfd >= 0 && maps >= 0);
    cr_assert_eq(ftruncate(memfd, BYTES), 0);
    v[1] = (struct iovec){map(memfd, MAP_SHARED), BYTES};
    v[2] = (struct iovec){map(-1, MAP_SHARED | MAP_ANONYMOUS), BYTES};
    /* Many mappings, so that the text has several blocks. */
    for (int i = 0; i < 3000; i++)
        mprotect(map(-1, MAP_PRIVATE | MAP_ANONYMOUS), 4096, PROT_READ);
    cr_expect(!memory_is_served(maps, v, 3), "anonymous and shared memory");
    cr_expect(!memory_is_served(maps, v, 3), "the descriptor can be read again");
    cr_expect(memory_is_served(-1, v, 3), "no descriptor");
    cr_assert_eq(pipe(text), 0);
    cr_expect(memory_is_served(text[0], v, 3), "not a file of mappings");
}
