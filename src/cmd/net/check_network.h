// SPDX-License-Identifier: BSD-2-Clause
/* The checks of `pumice doctor` that concern the network: port, buffers, MTU, firewall. */
#ifndef PUMICE_SRC_CMD_NET_CHECK_NETWORK_H
#define PUMICE_SRC_CMD_NET_CHECK_NETWORK_H

#include "src/cmd/net/doctor_report.h"

/* Each function checks the following, and adds one finding or more. */

/* No other program has UDP port 4791. */
void check_port(struct doctor_report *report);
/* The sizes of socket buffers that the kernel grants. */
void check_buffers(struct doctor_report *report);
/* The MTU of each interface that is up. */
void check_mtu(struct doctor_report *report);
/* The firewall of this host lets UDP port 4791 pass. */
void check_firewall(struct doctor_report *report);

#endif
