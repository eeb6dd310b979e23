// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/touch.h"

#include <inttypes.h>

#include "src/check/base/finding.h"
#include "src/check/base/inside.h"
#include "src/check/objects/guard.h"
#include "src/check/objects/records.h"

static void report(const struct request *r, uint64_t offset, enum guard_access access, const void *where)
{
    static const char *const verbs[] = {[GUARD_READ] = "reads", [GUARD_WRITE] = "writes", [GUARD_UNKNOWN] = "touches"};

    finding_add(
        RULE_TOUCH,
        &(const struct finding_place){.where = trace_of(where, NULL), .other = r->where, .whose = "the request"},
        "the program %s byte %" PRIu64 " of memory that the %s with wr_id %" PRIu64
        " may fill: its completion was not polled yet",
        verbs[access], offset, request_kind(r->opcode), r->wr_id);
}

/* The checker itself, within its lock, also compares send buffers that should be no targets. The library fills targets when
 * the program polls. */
static bool touched(uint64_t address, enum guard_access access, const void *where)
{
    bool own = inside_is();
    uint64_t offset;

    if (!own)
        records_lock();
    const struct request *r = request_lift(address, &offset);
    if (r && !own && !inside_poll())
        report(r, offset, access, where);
    if (!own)
        records_unlock();
    return r != NULL;
}

void touch_start(void)
{
    if (rule_is_on(RULE_TOUCH))
        guard_start(touched);
}
