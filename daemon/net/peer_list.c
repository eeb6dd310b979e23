// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/peer_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/gid.h"

#define V4_BITS 96u /* of ::ffff:0:0/96, which all IPv4 addresses have in common */

/* Clears the bits after the first n. */
static void cut(uint8_t gid[16], unsigned n)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned keep = n > 8 * i ? n - 8 * i : 0;

        if (keep < 8)
            gid[i] &= (uint8_t)(0xff00u >> keep);
    }
}

static int parse_prefix(const char *text, size_t len, struct peer_prefix *out)
{
    const char *slash = memchr(text, '/', len);
    size_t host_len = slash ? (size_t)(slash - text) : len;
    char host[ADDR_TEXT_MAX];
    unsigned long bits;
    union addr addr;
    char *end;

    if (host_len == 0 || host_len >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, host_len);
    host[host_len] = 0;
    if (addr_parse(host, &addr) != 0)
        return -EINVAL;
    unsigned most = addr.sa.sa_family == AF_INET ? 32 : 128;
    bits = most;
    if (slash) {
        if (!isdigit((unsigned char)slash[1]))
            return -EINVAL;
        bits = strtoul(slash + 1, &end, 10);
        if (end != text + len || bits > most)
            return -EINVAL;
    }
    addr_to_gid(&addr, out->gid);
    out->bits = (uint8_t)(bits + (most == 32 ? V4_BITS : 0));
    cut(out->gid, out->bits);
    return 0;
}

int peer_list_parse(const char *text, struct peer_list *out)
{
    memset(out, 0, sizeof(*out));
    if (strcmp(text, "any") == 0)
        return 0;
    for (;;) {
        size_t len = strcspn(text, ",");

        if (out->n == PEER_LIST_MAX || parse_prefix(text, len, &out->prefix[out->n]) != 0)
            return -EINVAL;
        out->n++;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

static bool has_prefix(const uint8_t gid[16], const struct peer_prefix *p)
{
    unsigned whole = p->bits / 8, rest = p->bits % 8;

    if (memcmp(gid, p->gid, whole) != 0)
        return false;
    return rest == 0 || ((gid[whole] ^ p->gid[whole]) & (uint8_t)(0xff00u >> rest)) == 0;
}

bool peer_list_admits(const struct peer_list *l, const uint8_t gid[16])
{
    for (unsigned i = 0; i < l->n; i++) {
        /* ::/0 and other short IPv6 prefixes do not include the IPv4 addresses. */
        if (gid_is_v4(gid) == (l->prefix[i].bits >= V4_BITS && gid_is_v4(l->prefix[i].gid)) &&
            has_prefix(gid, &l->prefix[i]))
            return true;
    }
    return l->n == 0;
}

const char *peer_prefix_text(const struct peer_prefix *p, char buf[PEER_PREFIX_TEXT_MAX])
{
    bool v4 = p->bits >= V4_BITS && gid_is_v4(p->gid);
    char text[ADDR_TEXT_MAX];
    union addr addr;

    memset(&addr, 0, sizeof(addr));
    if (v4) {
        addr.v4.sin_family = AF_INET;
        memcpy(&addr.v4.sin_addr, p->gid + 12, 4);
    } else {
        addr.v6.sin6_family = AF_INET6;
        memcpy(&addr.v6.sin6_addr, p->gid, 16);
    }
    snprintf(buf, PEER_PREFIX_TEXT_MAX, "%s/%u", addr_text(&addr, text), p->bits - (v4 ? V4_BITS : 0));
    return buf;
}
