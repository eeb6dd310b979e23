// SPDX-License-Identifier: BSD-2-Clause
/* Row D12: when the first queue pair of a device is connected to an address, the device finds out by itself whether small and large
 * packets get there and are answered, as `pumice ping` does when it is asked. A large one is as long as the queue pair's path MTU
 * makes packets. What is found goes to the log if it is bad, to `pumice status`, and to the map, a file that says who pairs with
 * whom. Nothing waits for it. With PATH_CHECK_ENFORCE queue pairs that nothing would come of are given up at once, rather than
 * after their retries, and no more are connected that way; the next attempt checks again. */
#ifndef PUMICE_DAEMON_PATH_CHECK_H
#define PUMICE_DAEMON_PATH_CHECK_H

#include <jansson.h>

#include "daemon/device/device.h"
#include "daemon/session/control.h"
#include "daemon/session/session.h"

#define PATH_CHECK_MAX 1024u /* of a device; those beyond are not checked */
#define PATH_CHECK_TRY_S 0.25 /* between tries */

/* A queue pair of s is about to be connected to gid with packets of up to mtu bytes of payload: a check begins unless there was
 * one. 0, or -EHOSTUNREACH told in *rp if it is known to fail and policy is to enforce; then it is checked again, too. */
int path_check_use(struct session *s, const uint8_t gid[16], uint32_t mtu, struct control_reply *rp);
/* An answer to somebody's probe came; true: it was one of these. */
bool path_check_answer(struct device *d, const struct check *answer, uint64_t now);
/* The kernel or a router says (as in ping_trouble) that something does not get to gid. */
void path_check_trouble(struct device *d, const uint8_t gid[16], int err, uint32_t mtu);
/* An array of {gid, verdict, size, tries, small_us, large_us, program, pid}. */
json_t *path_check_json(const struct device *d);
void path_check_fini(struct device *d);

#endif
