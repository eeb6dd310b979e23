// SPDX-License-Identifier: BSD-2-Clause
/* Files of the checker, as `pumice run` reads them: right lines, and lines of any other kind. */
#include "src/cmd/check/reports.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/test_reports.XXXXXX";
static struct reports all;

static void setup(void)
{
    cr_assert_not_null(mkdtemp(dir));
}
static void write_file(const char *name, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}
static void teardown(void)
{
    char command[64];

    reports_free(&all);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    cr_assert_eq(system(command), 0);
}
TestSuite(check_reports, .init = setup, .fini = teardown);

Test(check_reports, traces_and_findings)
{
    write_file(
        "12",
        "T\t1\t/bin/a\t1f\t/lib/b.so\t20\nT\t2\t/bin/a\t30\n"
        "F\t1\toverlap\t1\t12\t2\tthe other\tsome text\nF\t1\tleft\t0\t12\t0\t\tmore\nF\t7\toverlap\t1\t12\t2\tx\ty\n");
    write_file("13", "F\t1\toverlap\t1\t13\t0\t\tno trace\n");
    cr_assert_eq(reports_read(&all, dir), 0);
    cr_assert_eq(all.n, 2);
    const struct report *r = &all.list[0];
    cr_assert_eq(r->pid, 12);
    cr_assert_eq(r->n_findings, 2);
    cr_assert_eq(r->findings[0].count, 7);
    cr_assert_str_eq(r->findings[0].text, "some text");
    cr_assert_str_eq(r->findings[0].whose, "the other");
    const struct report_trace *t = reports_trace(&all, 12, 1);
    cr_assert(t && t->n == 2 && t->at[1].offset == 0x20);
    cr_assert_str_eq(t->at[1].module, "/lib/b.so");
    cr_assert_null(reports_trace(&all, 12, 3));
    cr_assert_null(reports_trace(&all, 13, 1));
    cr_assert_null(reports_trace(&all, 12, 0));
}

Test(check_reports, other_lines_and_files_are_left_out)
{
    write_file("12",
               "\n\t\nT\nT\t1\nT\t1\t/bin/a\nT\tx\t/bin/a\t1\nT\t1\t/bin/a\t-1\nT\t99999999999\ta\t1\nT\t3\ta\t1\tb\n"
               "F\nF\t0\tleft\t0\t1\t0\t\tx\nF\t-1\tleft\t0\t1\t0\t\tx\nF\t1\tleft\t0\t1\t0\tx\n"
               "F\t1\tleft\tz\t1\t0\t\tx\nX\t1\nQ\t1\nR\t1\nU\t1\t2\t3\t4\nE\t\nF\t1\tleft\t0\t1\t0\t\t");
    write_file("notes", "F\t1\tleft\t0\t1\t0\t\tx\n");
    cr_assert_eq(reports_read(&all, dir), 0);
    cr_assert_eq(all.n, 1);
    cr_assert_eq(all.list[0].n_findings, 1, "the last line of the file has no end");
    cr_assert_null(reports_trace(&all, 12, 1));
    cr_assert_null(reports_trace(&all, 12, 3));
}

Test(check_reports, long_lines)
{
    char *text = malloc(200000);

    cr_assert_not_null(text);
    char *at = stpcpy(text, "T\t5");
    for (unsigned i = 0; i < 10000; i++)
        at = stpcpy(at, "\tmodule\t1f");
    at = stpcpy(at, "\nF\t1\t");
    memset(at, 'r', 5000);
    strcpy(at + 5000, "\t0\t1\t0\t\ttext\n");
    write_file("1", text);
    free(text);
    cr_assert_eq(reports_read(&all, dir), 0);
    const struct report_trace *t = reports_trace(&all, 1, 5);
    cr_assert(!t || t->n == REPORT_DEPTH);
    cr_assert_eq(all.list[0].n_findings, 1);
    cr_assert_eq(strlen(all.list[0].findings[0].rule), sizeof(all.list[0].findings[0].rule) - 1);
}

Test(check_reports, no_directory)
{
    cr_assert_lt(reports_read(&all, "/nonexistent/directory"), 0);
}
