// SPDX-License-Identifier: BSD-2-Clause
/* The devices of this daemon: opens all of them, closes them, and sets the faults that they inject. */
#ifndef PUMICE_DAEMON_SERVER_DEVICE_SET_H
#define PUMICE_DAEMON_SERVER_DEVICE_SET_H

#include <stdint.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"

struct device_set {
    struct device *device[PM_DEVICES_MAX];
    unsigned n;
    struct netem *netem; /* NULL: none */
    struct connections connections; /* of all devices */
    char fault[sizeof(((struct pm_fault_req *)0)->spec)]; /* fault specification in force */
    char script[sizeof(((struct pm_fault_req *)0)->script)]; /* fault script in force */
    uint64_t seed; /* of the faults */
    uint32_t turns; /* processes that were spread over the devices */
};

/* Opens the devices of the settings. Their threads don't run yet. Returns 0, or -errno with why. Call device_set_close
 * in either case. */
int device_set_open(struct device_set *s, const struct settings *settings, char why[ERROR_TEXT_MAX]);
/* Starts their threads. 0 or -errno with why; -EINVAL: the setting `cpus` is wrong. */
int device_set_start(struct device_set *s, const struct settings *settings, char why[ERROR_TEXT_MAX]);
/* Ends their threads. */
void device_set_stop(struct device_set *s);
/* Ends their sessions, and frees them. device_set_stop must have ended their threads, if they were started. */
void device_set_close(struct device_set *s);
/* Describes all devices for a client. */
void device_set_list(const struct device_set *s, struct pm_list_rep *rep);
/* The faults of a daemon. */
struct device_faults {
    const char *spec, *script; /* "": none */
    uint64_t seed;
    unsigned host; /* the lines of the script that are for this host */
    unsigned hosts; /* of the lab; 0: not known */
    uint64_t start; /* when their times begin; 0: now */
};
/* Sets the faults of all devices. 0, or -EINVAL with why. -ETIMEDOUT with why: a device does not answer. The
 * others, and devices that are just slow, have the new faults. */
int device_set_inject(struct device_set *s, const struct device_faults *f, char why[FAULT_WHY_MAX]);
/* Sets the addresses that all devices accept packets from. */
void device_set_admit(struct device_set *s, const struct peer_list *peers);
/* Sets the timing of all devices. */
void device_set_tune(struct device_set *s, const struct device_timing *timing);

/* Makes the reply an error: the device's thread does not answer. Returns -ETIMEDOUT. */
int device_is_late(const struct device *d, struct control_reply *rp);

#endif
