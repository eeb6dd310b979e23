// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/base/lint_state.h"

#include <stdarg.h>
#include <stdlib.h>

void *lint_grow(struct lint *l, void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    size_t more = *cap ? *cap * 2 : 16;
    void *bigger = realloc(array, more * size);

    if (!bigger) {
        l->no_memory = true;
        return NULL;
    }
    *cap = more;
    return bigger;
}

void lint_report(struct lint *l, enum lint_rule rule, uint32_t frame, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (lint_result_add(l->result, rule, lint_rules[rule].severity, frame, format, ap) != 0)
        l->no_memory = true;
    va_end(ap);
}

void lint_report_unless(struct lint *l, bool excused, enum lint_rule rule, uint32_t frame, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (lint_result_add(l->result, rule, excused ? LINT_NOTE : lint_rules[rule].severity, frame, format, ap) != 0)
        l->no_memory = true;
    va_end(ap);
}
