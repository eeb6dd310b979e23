// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/start.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/check/base/finding.h"
#include "src/check/base/report.h"
#include "src/check/base/trace.h"
#include "src/check/objects/records.h"
#include "src/check/requests/touch.h"

static void forked(void)
{
    records_forked();
    finding_forget();
    report_forked();
    trace_forked();
    touch_forked();
}

void start_check(void)
{
    const char *rules = getenv("PUMICE_CHECK"), *bad;

    if (!rule_choose(rules && rules[0] ? rules : "all", &bad))
        fprintf(stderr, "pumice check: PUMICE_CHECK: there is no rule '%.*s'\n", (int)strcspn(bad, ","), bad);
    touch_start();
    pthread_atfork(NULL, NULL, forked);
}

void end_check(void)
{
    records_end();
    finding_end();
}
