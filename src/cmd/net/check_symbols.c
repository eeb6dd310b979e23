// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/net/check_symbols.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/common/paths.h"
#include "src/cmd/common/verbs_symbols.h"

#define PROVIDERS_NAMED 3 /* findings about provider libraries; more of one release of rdma-core lack the same */

/* State of the search through the provider libraries. */
struct providers {
    struct doctor_report *report;
    const struct elf_symbols *ours;
    const char *fix;
    unsigned n, bad;
};

/* "" or " and 3 more symbols" */
static const char *more(const struct verbs_missing *m, char *out, size_t size)
{
    out[0] = 0;
    if (m->n > 1)
        snprintf(out, size, " and %u more symbols", m->n - 1);
    return out;
}

static void check_provider(void *closure, const char *path)
{
    struct providers *p = closure;
    struct verbs_missing m;
    char rest[32];

    p->n++;
    if (verbs_symbols_check(p->ours, path, &m) <= 0)
        return;
    if (p->bad++ < PROVIDERS_NAMED)
        doctor_report_add(p->report, "symbols", FINDING_WARN, p->fix,
                          "%s imports %s%s, which the client library does not have, so programs that need it can't be "
                          "loaded",
                          path, m.symbol, more(&m, rest, sizeof(rest)));
}

static void check_providers(struct doctor_report *report, const struct elf_symbols *ours, const char *fix)
{
    struct providers p = {.report = report, .ours = ours, .fix = fix};

    verbs_symbols_providers(report->sysroot, check_provider, &p);
    if (p.bad > PROVIDERS_NAMED)
        doctor_report_add(report, "symbols", FINDING_WARN, fix,
                          "%u more provider libraries import symbols that the "
                          "client library does not have",
                          p.bad - PROVIDERS_NAMED);
    if (!p.n)
        doctor_report_add(report, "symbols", FINDING_OK, "", "no provider libraries of rdma-core are installed");
    else if (!p.bad)
        doctor_report_add(report, "symbols", FINDING_OK, "",
                          "the client library has all symbols that the %u installed provider libraries import", p.n);
}

static void check_ucx(struct doctor_report *report, const struct elf_symbols *ours, const char *fix)
{
    struct verbs_missing m;
    char rest[32];

    if (verbs_symbols_check_ucx(ours, report->sysroot, &m) > 0)
        doctor_report_add(report, "symbols", FINDING_WARN, fix,
                          "UCX can't load its transports over verbs and works without them: %s imports %s%s, which the "
                          "client library does not have",
                          m.file, m.symbol, more(&m, rest, sizeof(rest)));
}

/* Writes the path of a program, which may be in PATH, or of a library. Returns 0 or -errno. */
static int find_program(const char *name, char *path)
{
    if (!strchr(name, '/'))
        return -paths_command(name, path);
    snprintf(path, PATH_MAX, "%s", name);
    return access(path, R_OK) == 0 ? 0 : -errno;
}

static void check_program(struct doctor_report *report, const struct elf_symbols *ours, const char *fix,
                          const char *name)
{
    char path[PATH_MAX], rest[32];
    struct verbs_missing m;
    int rc = find_program(name, path);

    if (rc == 0)
        rc = verbs_symbols_check_all(ours, path, &m);
    if (rc == -ENOEXEC)
        doctor_report_add(report, "program", FINDING_UNKNOWN,
                          "name the program that it starts, or the library that it loads",
                          "%s is not an ELF file that the loader can load", path);
    else if (rc < 0)
        doctor_report_add(report, "program", FINDING_FAIL, "name a program or a library", "%s: %s", name,
                          strerror(-rc));
    else if (rc > 0)
        doctor_report_add(report, "program", FINDING_FAIL, fix,
                          "%s imports %s%s, which the client library does not have, so %s can't be loaded", m.file,
                          m.symbol, more(&m, rest, sizeof(rest)), strcmp(m.file, path) == 0 ? "it" : path);
    else
        doctor_report_add(report, "program", FINDING_OK, "",
                          "the client library has all symbols that %s and its libraries import", path);
}

void check_symbols(struct doctor_report *report, const char *program)
{
    struct elf_symbols ours = {0};
    char newest[64], fix[200];

    if (!doctor_report_is_ok(report, "library"))
        return;
    int rc = verbs_symbols_ours(&ours);
    if (rc) {
        doctor_report_add(report, "symbols", FINDING_FAIL, "make, or make install",
                          "can't read the symbols of the client library: %s", strerror(-rc));
    } else {
        verbs_symbols_newest(&ours, newest, sizeof(newest));
        snprintf(fix, sizeof(fix),
                 "use a newer Pumice, or an older rdma-core: this client library has the versions up to %s", newest);
        check_providers(report, &ours, fix);
        check_ucx(report, &ours, fix);
        if (program)
            check_program(report, &ours, fix, program);
    }
    elf_symbols_free(&ours);
}
