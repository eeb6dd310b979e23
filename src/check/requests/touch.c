// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/touch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/check/base/finding.h"
#include "src/check/base/inside.h"
#include "src/check/objects/guard.h"
#include "src/check/objects/records.h"
#include "src/check/objects/watch.h"

/* how: "reads byte 7". */
static void report(const struct request *r, const struct trace *where, const char *how)
{
    finding_add(RULE_TOUCH, &(const struct finding_place){.where = where, .other = r->where, .whose = "the request"},
                "the program %s of memory that the %s with wr_id %" PRIu64
                " may fill: its completion was not polled yet",
                how, request_kind(r->opcode), r->wr_id);
}

/* The requests of a queue pair in its error state will fail, and those without a region, too. */
static bool may_fill(const struct request *r)
{
    const struct qp_record *q = record_find(KIND_QP, r->owner, NULL);
    const struct srq_record *s = q ? NULL : record_find(KIND_SRQ, r->owner, NULL);
    const struct ibv_srq *srq = s ? s->r.object : NULL;

    if ((!q && !srq) || (q && qp_is_done(q)))
        return false;
    for (unsigned i = 0; i < r->num_sge; i++) {
        if (r->sge[i].length && !record_of_lkey(q ? q->qp->context : srq->context, r->sge[i].lkey))
            return false;
    }
    return true;
}

/* The checker itself, within its lock, also compares send buffers that should be no targets. The library fills targets when
 * the program polls. */
static bool touched(uint64_t address, enum guard_access access, const void *instruction)
{
    static const char *const verbs[] = {[GUARD_READ] = "reads", [GUARD_WRITE] = "writes", [GUARD_UNKNOWN] = "touches"};
    bool own = inside_is();
    uint64_t offset;
    char how[64];

    if (!own)
        records_lock();
    const struct request *r = request_lift(address, &offset);
    if (r && !own && !inside_library() && may_fill(r)) {
        snprintf(how, sizeof(how), "%s byte %" PRIu64, verbs[access], offset);
        report(r, trace_at(instruction), how);
    }
    if (!own)
        records_unlock();
    return r != NULL;
}

static const struct trace *place_of_trap(const void *instruction)
{
#if defined(__x86_64__) /* its debug registers trap behind the access */
    return trace_behind(instruction);
#else
    return trace_at(instruction);
#endif
}

/* As above, but the word stays watched when the checker or the library has touched it. */
static void word_touched(uint64_t word, const void *instruction)
{
    uint64_t offset;
    unsigned bytes;
    char how[80];

    if (inside_is() || inside_library())
        return;
    records_lock();
    const struct request *r = request_lift_word(word, &offset, &bytes);
    if (r && may_fill(r)) {
        snprintf(how, sizeof(how), "touches bytes %" PRIu64 " to %" PRIu64, offset, offset + bytes - 1);
        report(r, place_of_trap(instruction), how);
    }
    records_unlock();
}

void touch_start(void)
{
    if (!rule_is_on(RULE_TOUCH))
        return;
    guard_start(touched);
    int err = watch_start(word_touched);
    if (err)
        fprintf(stderr,
                "pumice check: touch: only whole pages are watched: perf_event_open: %s. For smaller targets, set "
                "kernel.perf_event_paranoid to 2 or less, or give the process CAP_PERFMON\n",
                strerror(-err));
}

void touch_forked(void)
{
    if (rule_is_on(RULE_TOUCH))
        watch_forked();
}
