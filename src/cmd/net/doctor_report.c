// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/net/doctor_report.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void doctor_report_add(struct doctor_report *report, const char *check, enum finding_verdict v, const char *fix,
                       const char *fmt, ...)
{
    struct finding *f = &report->finding[report->n];
    va_list ap;

    if (report->n == FINDINGS_MAX)
        return;
    report->n++;
    f->check = check;
    f->verdict = v;
    snprintf(f->fix, sizeof(f->fix), "%s", fix);
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
}

bool doctor_report_is_ok(const struct doctor_report *report, const char *check)
{
    for (unsigned i = 0; i < report->n; i++)
        if (strcmp(report->finding[i].check, check) == 0)
            return report->finding[i].verdict == FINDING_OK;
    return true;
}

bool doctor_report_read(const struct doctor_report *report, const char *path, char *out, size_t size)
{
    char name[PATH_MAX];

    snprintf(name, sizeof(name), "%s%s", report->sysroot, path);
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    bool good = fgets(out, (int)size, file) != NULL;
    fclose(file);
    if (good)
        out[strcspn(out, "\n")] = 0;
    return good;
}
