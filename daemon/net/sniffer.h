// SPDX-License-Identifier: BSD-2-Clause
/* Detects packet sniffers. With GSO, a capture on the sending host shows datagrams of up to 64 KiB instead of RoCEv2
 * packets. So `gso = auto` sends without GSO while a sniffer is open. */
#ifndef PUMICE_DAEMON_NET_SNIFFER_H
#define PUMICE_DAEMON_NET_SNIFFER_H

#include <stdbool.h>
#include <stddef.h>

/* True if the text of /proc/net/packet lists a packet socket that receives every protocol (0003) on one of the two
 * interfaces, or on all. */
bool sniffer_in_text(const char *text, unsigned ifindex, unsigned loopback_ifindex);

/* The same check for this network namespace, now. False if the file can't be read. It checks two interfaces, because
 * packets to another address of this host pass the loopback interface, whichever interface has the address. */
bool sniffer_present(unsigned ifindex, unsigned loopback_ifindex);

#endif
