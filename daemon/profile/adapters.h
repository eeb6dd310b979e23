// SPDX-License-Identifier: BSD-2-Clause
/* The table of the profiles: what adapters say of themselves. docs/profiles.md names the source of each value. */
#ifndef PUMICE_DAEMON_PROFILE_ADAPTERS_H
#define PUMICE_DAEMON_PROFILE_ADAPTERS_H

#include "daemon/profile/limits.h"

/* The order is that of the option's choices. */
enum profile_id {
    PROFILE_DEFAULT = 0,
    PROFILE_CONNECTX_4,
    PROFILE_CONNECTX_6,
    PROFILE_BLUEFIELD_3,
    PROFILE_E810,
    PROFILE_BCM57508,
    PROFILE_RXE,
    PROFILES,
};
#define PROFILE_NAMES "default|connectx-4|connectx-6|bluefield-3|e810|bcm57508|rxe"

/* In the limits of an adapter, 0 means that the device has the limit of the default profile. ADAPTER_NONE means that the
 * adapter says 0. The values may be above those that Pumice can do. */
#define ADAPTER_NONE UINT32_MAX

struct adapter {
    const char *name; /* of the profile, as the option has it */
    struct device_limits limits;
};
extern const struct adapter adapters[PROFILES];

#endif
