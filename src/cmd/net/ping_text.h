// SPDX-License-Identifier: BSD-2-Clause
/* What `pumice ping` has found out, and its words for it. */
#ifndef PUMICE_SRC_CMD_NET_PING_TEXT_H
#define PUMICE_SRC_CMD_NET_PING_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "pumice/abi.h"
#include "src/cmd/common/targets.h"

enum ping_size {
    SMALL_ONE,
    LARGE,
    PING_SIZES, /* their number */
};
struct ping_probe {
    uint32_t size; /* bytes of payload */
    uint32_t sent; /* how many */
    struct pm_check_rep told; /* the answer, or else the last thing that was told of one */
};
struct ping {
    const char *host; /* as it was given */
    uint8_t gid[16]; /* its address */
    uint8_t own[16]; /* ours */
    uint32_t device; /* index of ours */
    char name[PM_NAME_MAX]; /* … and its name */
    uint32_t mtu; /* … and path MTU */
    char other[SOCKET_PATH_MAX]; /* control socket of the daemon there, if it is one of a lab; else empty */
    uint32_t other_device;
    struct ping_probe probe[PING_SIZES];
    uint64_t heard_here; /* probes that came from there meanwhile */
    uint64_t heard_there; /* probes from here that came in there meanwhile */
    bool knows_there; /* … which is known */
    uint64_t damaged_here; /* packets with a wrong ICRC that came in here meanwhile */
    uint64_t damaged_there; /* … there, if that is known */
};

/* It was answered. */
static inline bool ping_arrived(const struct ping_probe *p)
{
    return p->told.state == PM_CHECK_ANSWERED;
}
/* 0 both arrive, 2 large ones don't, 3 small ones don't, 4 neither. */
int ping_exit_code(const struct ping *p);

/* All of it as text, to standard output. */
void ping_show(const struct ping *p);
/* … as one object; the caller's. */
json_t *ping_json(const struct ping *p);

#endif
