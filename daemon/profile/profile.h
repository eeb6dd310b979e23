// SPDX-License-Identifier: BSD-2-Clause
/* Profiles: what a device says of itself, and where it is strict. The default is Pumice's own. The others are adapters
 * that can be bought, and the software device of Linux (adapters.h).
 *
 * A profile never promises more than Pumice can do: where an adapter has more, the device has Pumice's limit. */
#ifndef PUMICE_DAEMON_PROFILE_PROFILE_H
#define PUMICE_DAEMON_PROFILE_PROFILE_H

#include "daemon/core/tm/tag_list.h"
#include "daemon/profile/adapters.h"

/* The choice of tag matching: that of the device's profile, or another. */
enum tm_choice {
    TM_CHOICE_AUTO = 0,
    TM_CHOICE_GENEROUS,
    TM_CHOICE_MLX5,
};

/* The name of a profile, as the option has it. */
const char *profile_name(enum profile_id id);
/* Fills in the limits of a device with this profile. */
void profile_limits(enum profile_id id, struct device_limits *l);
/* The limits of tag matching of a device with these limits. NULL: it has none. */
const struct tm_profile *profile_tag_matching(const struct device_limits *l, enum tm_choice choice,
                                              enum tm_profile_id *id);
/* Does the device have QPs of this type (enum ibv_qp_type)? */
bool profile_has_type(const struct device_limits *l, uint32_t qp_type);

#endif
