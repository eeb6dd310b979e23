// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/net/check_cm.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/common/verbs_symbols.h"

struct libraries {
    struct doctor_report *report;
    const struct elf_symbols *ours; /* NULL: not known */
    unsigned n;
};

/* The version in the name of a file, "1.3.44.0" of librdmacm.so.1.3.44.0. */
static const char *version_of(const char *path)
{
    static const char before[] = "librdmacm.so.";
    const char *at = strstr(path, before);

    return at ? at + strlen(before) : "of an unknown version";
}

static void check_library(void *closure, const char *path)
{
    struct libraries *l = closure;
    struct verbs_missing m;

    l->n++;
    if (l->ours && verbs_symbols_check(l->ours, path, &m) > 0)
        doctor_report_add(l->report, "rdma_cm", FINDING_WARN, "use a newer Pumice, or an older rdma-core",
                          "librdmacm %s (%s) imports %s, which the client library does not have, so programs that use "
                          "rdma_cm can't be loaded",
                          version_of(path), path, m.symbol);
    else
        doctor_report_add(l->report, "rdma_cm", FINDING_OK, "",
                          "programs can connect by rdma_cm: librdmacm %s is installed (%s)", version_of(path), path);
}

void check_cm(struct doctor_report *report)
{
    char device[PATH_MAX];
    struct elf_symbols ours = {0};
    struct libraries l = {.report = report};

    if (doctor_report_is_ok(report, "library") && verbs_symbols_ours(&ours) == 0)
        l.ours = &ours;
    verbs_symbols_rdmacm(report->sysroot, check_library, &l);
    elf_symbols_free(&ours);
    if (!l.n)
        doctor_report_add(report, "rdma_cm", FINDING_OK, "apt-get install librdmacm1",
                          "librdmacm is not installed; only programs that connect by rdma_cm need it");
    snprintf(device, sizeof(device), "%s/dev/infiniband/rdma_cm", report->sysroot);
    if (access(device, F_OK) == 0)
        doctor_report_add(
            report, "rdma_cm", FINDING_OK, "",
            "this machine also has the rdma_cm of its kernel; programs under Pumice use the daemon's, and "
            "other programs are not affected");
}
