// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/sniffer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ETH_P_ALL_ 0x0003

bool sniffer_in_text(const char *text, unsigned ifindex, unsigned loopback_ifindex)
{
    /* sk               RefCnt Type Proto  Iface R Rmem   User   Inode */
    for (const char *line = strchr(text, '\n'); line; line = strchr(line, '\n')) {
        unsigned proto, iface;

        line++;
        if (sscanf(line, "%*s %*s %*s %x %u", &proto, &iface) != 2 || proto != ETH_P_ALL_)
            continue;
        if (iface == 0 || iface == ifindex || iface == loopback_ifindex)
            return true;
    }
    return false;
}

bool sniffer_present(unsigned ifindex, unsigned loopback_ifindex)
{
    char buf[16384];
    size_t used = 0;
    ssize_t n;
    int fd = open("/proc/net/packet", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (used < sizeof(buf) - 1 && (n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0)
        used += (size_t)n;
    close(fd);
    buf[used] = 0;
    return sniffer_in_text(buf, ifindex, loopback_ifindex);
}
