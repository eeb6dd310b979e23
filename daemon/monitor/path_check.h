// SPDX-License-Identifier: BSD-2-Clause
/* Automatic connectivity checks. When the first QP of a device is connected to an address, the device sends small and
 * large probes to it. `pumice ping` does the same on request. The check succeeds if both are answered. A large probe
 * has the length of a full packet of the QP's path MTU. A bad result goes to the log. Every result goes to `pumice
 * status` and to the map, a file with one line for each check, which names both addresses. Nothing waits for the check.
 *
 * With PATH_CHECK_ENFORCE, QPs that can't work fail right after a failed check instead of after their retries. The
 * daemon refuses new connections to that address. Each refused attempt starts another check. */
#ifndef PUMICE_DAEMON_MONITOR_PATH_CHECK_H
#define PUMICE_DAEMON_MONITOR_PATH_CHECK_H

#include <jansson.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

#define PATH_CHECK_MAX 1024u /* paths of a device; further ones are not checked */
#define PATH_CHECK_TRY_S 0.25 /* seconds between two tries */

/* A QP of s is about to be connected from its address sgid_index to gid, with packets of up to mtu bytes of payload.
 * Begins a check unless there was one. Returns 0, or -EHOSTUNREACH with the reason in *rp if the path is known to fail
 * and the policy is to enforce. In that case the check also begins again. */
int path_check_use(struct session *s, const uint8_t gid[16], uint8_t sgid_index, uint32_t mtu,
                   struct control_reply *rp);
/* A random number by which the answer to a probe is known; not 0. */
uint64_t path_check_token(void);
/* An answer to a probe came. True: the probe was one of this module. */
bool path_check_answer(struct device *d, const struct check *answer, uint64_t now);
/* The kernel or a router reports (see ping_trouble) that packets do not reach gid. */
void path_check_trouble(struct device *d, const uint8_t gid[16], int err, uint32_t mtu);
/* Path i of the device, in the order of their first use: {gid, verdict, size, tries, small_us, large_us, program, pid}.
 * NULL: there are not so many. */
json_t *path_check_json(const struct device *d, uint32_t i);
void path_check_fini(struct device *d);

#endif
