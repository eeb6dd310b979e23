// SPDX-License-Identifier: BSD-2-Clause
/* Charges users for what they ask of the daemon (daemon/base/quota.h), and explains refusals to the client.
 *
 * Both functions return 0, or -errno with the reason in *rp. The caller may then still call control_explain: it keeps
 * this reason. quota_release and quota_release_memory end a charge. */
#ifndef PUMICE_DAEMON_SESSION_CHARGE_H
#define PUMICE_DAEMON_SESSION_CHARGE_H

#include <stdint.h>

#include "daemon/base/quota.h"

struct control_reply;

int charge_object(const struct quota_owner *o, enum quota_kind object, struct control_reply *rp);
int charge_memory(const struct quota_owner *o, uint32_t mappings, uint64_t bytes, struct control_reply *rp);

#endif
