// SPDX-License-Identifier: BSD-2-Clause
/* Is somebody capturing? With GSO a capture on the sending host shows datagrams of up to 64 KiB in place of RoCEv2
 * packets, so `gso = auto` does without as long as a sniffer is open. */
#ifndef PUMICE_DAEMON_SNIFFER_H
#define PUMICE_DAEMON_SNIFFER_H

#include <stdbool.h>
#include <stddef.h>

/* True if the text of /proc/net/packet lists a packet socket that gets every protocol (0003) on one of the two
 * interfaces, or on all. */
bool sniffer_in_text(const char *text, unsigned ifindex, unsigned loopback_ifindex);

/* The same for this network namespace, now. False if the file can't be read. Two interfaces, because what goes to
 * another address of this host passes the loopback interface, whatever interface has the address. */
bool sniffer_present(unsigned ifindex, unsigned loopback_ifindex);

#endif
