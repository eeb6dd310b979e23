// SPDX-License-Identifier: BSD-2-Clause
/* Writes a ladder as one HTML file, without a script and without references to other files. Exchanges of more than a few
 * packets are folded to a band each, which opens on a click. A switch shows all packets in the order of time instead. */
#ifndef PUMICE_PCAP_PICTURE_LADDER_HTML_H
#define PUMICE_PCAP_PICTURE_LADDER_HTML_H

#include "pcap/picture/ladder.h"

/* Returns 0 or -ENOMEM. The caller checks ferror(f), too. */
int ladder_html(FILE *f, const struct ladder *l);

#endif
