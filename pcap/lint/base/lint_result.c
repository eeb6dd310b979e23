// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/base/lint_result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lint_result_add(struct lint_result *r, enum lint_rule rule, enum lint_severity severity, uint32_t frame,
                    const char *format, va_list ap)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 16;
        struct lint_finding *bigger = realloc(r->findings, cap * sizeof(*bigger));

        if (!bigger)
            return -ENOMEM;
        r->findings = bigger;
        r->cap = cap;
    }
    struct lint_finding *f = &r->findings[r->n++];

    f->rule = rule;
    f->severity = severity;
    f->frame = frame;
    vsnprintf(f->text, sizeof(f->text), format, ap);
    if (severity == LINT_ERROR)
        r->errors++;
    else
        r->notes++;
    return 0;
}

static int by_frame(const void *a, const void *b)
{
    const struct lint_finding *x = a, *y = b;

    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    return (int)x->rule - (int)y->rule;
}

void lint_result_sort(struct lint_result *r)
{
    if (r->n)
        qsort(r->findings, r->n, sizeof(*r->findings), by_frame);
}

void lint_free(struct lint_result *r)
{
    free(r->findings);
    memset(r, 0, sizeof(*r));
}
