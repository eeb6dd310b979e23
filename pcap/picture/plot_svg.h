// SPDX-License-Identifier: BSD-2-Clause
/* Writes a plot as SVG: three charts for each queue pair, all with the same time axis. */
#ifndef PUMICE_PCAP_PICTURE_PLOT_SVG_H
#define PUMICE_PCAP_PICTURE_PLOT_SVG_H

#include "pcap/picture/plot.h"

/* Returns 0 or -ENOMEM. The caller checks ferror(f), too. */
int plot_svg(FILE *f, const struct plot *p);

#endif
