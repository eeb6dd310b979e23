// SPDX-License-Identifier: BSD-2-Clause
/* The results of `pumice ping`, and their output as text or JSON, with hints. */
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
    PING_SIZES, /* number of sizes */
};
struct ping_probe {
    uint32_t size; /* bytes of payload */
    uint32_t sent; /* number of probes */
    struct pm_check_rep result; /* the answer, or the last error */
};
struct ping {
    const char *host; /* the other host, as the user gave it */
    uint8_t gid[16]; /* address of the other host */
    uint8_t own[16]; /* address of the own device */
    uint32_t device; /* index of the own device */
    char name[PM_NAME_MAX]; /* of the own device */
    uint32_t mtu; /* path MTU of the own device */
    char other[SOCKET_PATH_MAX]; /* control socket of the other host's daemon, if both are in a lab; else "" */
    uint32_t other_device; /* index of the other host's device */
    struct ping_probe probe[PING_SIZES];
    /* The counts below are those during the check. */
    uint64_t heard_here; /* probes of the other host that arrived here */
    uint64_t heard_there; /* probes of this host that arrived there */
    bool knows_there; /* heard_there is known */
    uint64_t damaged_here; /* packets with a wrong ICRC that arrived here */
    uint64_t damaged_there; /* packets with a wrong ICRC that arrived there, if known; else 0 */
};

/* True if a probe was answered. */
static inline bool ping_arrived(const struct ping_probe *p)
{
    return p->result.state == PM_CHECK_ANSWERED;
}
/* The exit code: 0 if both sizes arrive, 2 if large ones do not, 3 if small ones do not, 4 if neither does. */
int ping_exit_code(const struct ping *p);

/* Prints the results as text to standard output. */
void ping_print(const struct ping *p);

/* Returns the results as one JSON object, which the caller owns. */
json_t *ping_json(const struct ping *p);

#endif
