// SPDX-License-Identifier: BSD-2-Clause
/* Writes a ladder as SVG: all packets, in the order of time. */
#ifndef PUMICE_PCAP_PICTURE_LADDER_SVG_H
#define PUMICE_PCAP_PICTURE_LADDER_SVG_H

#include "pcap/picture/ladder.h"

/* The caller checks ferror(f). */
void ladder_svg(FILE *f, const struct ladder *l);

#endif
