// SPDX-License-Identifier: BSD-2-Clause
/* The way of one packet through an emulated network. */
#ifndef PUMICE_DAEMON_NETEM_NETEM_TRIP_H
#define PUMICE_DAEMON_NETEM_NETEM_TRIP_H

#include <stdint.h>

struct netem_trip {
    uint16_t from, to; /* hosts */
    uint8_t next, hops; /* the link that it passes next, and how many there are */
};

#endif
