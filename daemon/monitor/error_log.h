// SPDX-License-Identifier: BSD-2-Clause
/* The engine's reports (core/report.h) in words: for the log, one line each, and for `status` and `why`. */
#ifndef PUMICE_DAEMON_REPORTS_H
#define PUMICE_DAEMON_REPORTS_H

#include <jansson.h>
#include <stddef.h>

#include "daemon/device/device.h"

#define REPORT_TEXT_MAX 512

/* What happened, without who: "sent NAK remote access error: RC RDMA WRITE Only, PSN 100, key 0x77700, address 0x1234500".
 * Returns out. */
const char *report_text(const struct report *r, char out[REPORT_TEXT_MAX]);
/* The same as an object: event, cause, status, syndrome, opcode, qpn, peer_qpn, peer, psn, expected, key, va,
 * retries_left, text; those that mean something. NULL: out of memory. */
json_t *report_json(const struct report *r);

/* Takes all reports from the device's engine and writes them to the log. */
void error_log_take(struct device *d);
/* Logs a packet from this GID that does not get as far as the engine: p[0 ... len) is the UDP payload. What it says of itself is told
 * as it stands, even if the ICRC is wrong. */
void error_log_undecoded(struct device *d, enum drop_cause cause, const uint8_t from[16], const uint8_t *p, size_t len);

#endif
