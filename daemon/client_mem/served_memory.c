// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/served_memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TEXT_BYTES (256u << 10) /* of mountinfo; mounts behind that are not known */
#define BLOCK_BYTES (64u << 10)

/* --- file systems ------------------------------------------------------------------------------ */

/* Keeps the file system its pages in memory, or on disks that its unnamed device hides? */
static bool is_local_type(const char *type, size_t len)
{
    static const char *const local[] = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs",
                                        "btrfs", "zfs",   "bcachefs", "overlay"};

    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        if (strlen(local[i]) == len && memcmp(local[i], type, len) == 0)
            return true;
    }
    return false;
}

bool device_is_served(const char *mountinfo, unsigned major, unsigned minor)
{
    const char *end;

    for (const char *line = mountinfo; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        unsigned of_line[2];
        const char *type = strstr(line, " - ");

        if (!type || type > end || sscanf(line, "%*u %*u %u:%u", &of_line[0], &of_line[1]) != 2)
            continue;
        if (of_line[0] != major || of_line[1] != minor)
            continue;
        type += strlen(" - ");
        /* A FUSE server may work on a block device, as "fuseblk". */
        return strncmp(type, "fuse", 4) == 0 || (major == 0 && !is_local_type(type, strcspn(type, " \n")));
    }
    return major == 0;
}

/* Is it the kernel's own mount of shared memory: memfd, System V, shared anonymous memory? Nobody can mount that. */
static bool is_shared_memory(dev_t dev)
{
    const unsigned flags[] = {0, MFD_HUGETLB};
    bool found = false;

    for (unsigned i = 0; i < 2 && !found; i++) {
        struct stat st;
        int fd = memfd_create("pumice-device", MFD_CLOEXEC | flags[i]);

        if (fd < 0)
            continue;
        found = fstat(fd, &st) == 0 && st.st_dev == dev;
        close(fd);
    }
    return found;
}

static bool is_served(dev_t dev)
{
    char *text = malloc(TEXT_BYTES);
    int fd = open("/proc/thread-self/mountinfo", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    while (text && fd >= 0 && len < TEXT_BYTES - 1 && (n = read(fd, text + len, TEXT_BYTES - 1 - len)) > 0)
        len += (size_t)n;
    if (fd >= 0)
        close(fd);
    if (text)
        text[len] = 0;
    bool served = device_is_served(text ? text : "", major(dev), minor(dev)) && !is_shared_memory(dev);
    free(text);
    return served;
}

/* --- mappings of the process ------------------------------------------------------------------- */

/* The mappings are many, and most of them are in few file systems. */
struct known_device {
    dev_t dev;
    bool known, served;
};

static bool overlaps(uint64_t begin, uint64_t end, const struct iovec *v, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t at = (uintptr_t)v[i].iov_base;

        if (at < end && at + v[i].iov_len > begin)
            return true;
    }
    return false;
}

/* A line of /proc/PID/maps: "begin-end rwxp offset major:minor inode path". */
static bool line_is_served(const char *line, const struct iovec *v, unsigned n, struct known_device *known)
{
    uint64_t begin, end, inode;
    unsigned number[2];

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %*x %x:%x %" SCNu64, &begin, &end, &number[0], &number[1], &inode) !=
        5)
        return false;
    dev_t dev = makedev(number[0], number[1]);
    if (inode == 0 || !overlaps(begin, end, v, n))
        return false;
    if (!known->known || known->dev != dev)
        *known = (struct known_device){dev, true, is_served(dev)};
    return known->served;
}

bool memory_is_served(int maps_fd, const struct iovec *v, unsigned n)
{
    struct known_device known = {.known = false};
    char *block = malloc(BLOCK_BYTES);
    bool served = false, any = false;
    size_t have = 0;
    off_t at = 0;
    ssize_t got;

    while (!served && block && (got = pread(maps_fd, block + have, BLOCK_BYTES - 1 - have, at)) > 0) {
        char *line = block, *end;

        at += got;
        have += (size_t)got;
        block[have] = 0;
        for (; !served && (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = 0;
            any = true;
            served = line_is_served(line, v, n, &known);
        }
        have -= (size_t)(line - block);
        memmove(block, line, have);
    }
    free(block);
    return served || !any;
}
