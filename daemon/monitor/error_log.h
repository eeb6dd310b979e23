// SPDX-License-Identifier: BSD-2-Clause
/* Turns the engine's reports (daemon/core/qp/error_report.h) into text: one log line for each report, and the
 * reasons that `status` and `why` show. */
#ifndef PUMICE_DAEMON_MONITOR_ERROR_LOG_H
#define PUMICE_DAEMON_MONITOR_ERROR_LOG_H

#include <jansson.h>
#include <stddef.h>

#include "daemon/device/device.h"

#define REPORT_TEXT_MAX 512

/* Describes the event without naming its QP: "sent NAK remote access error; RC RDMA WRITE Only; PSN 100, key 0x77700,
 * address 0x1234500". Returns out. */
const char *report_text(const struct report *r, char out[REPORT_TEXT_MAX]);
/* The same as a JSON object: event, cause, status, syndrome, opcode, qpn, peer_qpn, peer, psn, expected, key, va,
 * retries_left, reason. Only the valid fields are present. NULL: out of memory. */
json_t *report_json(const struct report *r);

/* Takes all reports from the device's engine and writes them to the log. */
void error_log_take(struct device *d);
/* Logs a packet from this GID that did not reach the engine. p[0 … len) is the UDP payload. The log line shows the
 * packet's fields as they are, even if the ICRC is wrong. */
void error_log_undecoded(struct device *d, enum drop_cause cause, const uint8_t from[16], const uint8_t *p, size_t len);
/* Logs a packet that the device did not send, because it aims at a QP of this daemon that is connected to another
 * QP. p: its bytes. */
void error_log_bad_peer(struct device *d, const struct tx_pkt *t, const uint8_t *p);

#endif
