// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/check_run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/check/base/rule.h"
#include "src/cmd/check/check_report.h"
#include "src/cmd/check/findings.h"
#include "src/cmd/common/cmd.h"

#define EXIT_FINDINGS 124 /* of pumice, if the command ended well */

bool check_options_right(const struct check_options *o)
{
    const char *bad = NULL;

    if (o->rules && !rule_choose(o->rules, &bad)) {
        fprintf(stderr, "pumice: --check: there is no rule '%.*s'; the rules are all", (int)strcspn(bad, ","), bad);
        for (enum rule r = 0; r < RULES; r++)
            fprintf(stderr, ", %s", rule_name(r));
        fputs("\n", stderr);
        return false;
    }
    if (o->report && !check_report_known(o->report)) {
        say("--check-report: the name '%s' does not end with .json, .sarif or .xml, which says what the file is to be",
            o->report);
        return false;
    }
    if ((o->report || o->fail) && !o->rules) {
        say("--check-report and --check-fail need --check");
        return false;
    }
    int err = o->report ? check_report_create(o->report) : 0;
    if (err) {
        say("--check-report: can't write %s: %s", o->report, strerror(-err));
        return false;
    }
    return true;
}

void check_daemons(const struct check_options *o)
{
    /* The rule takes the rights of memory, which only this way ignores. */
    if (o->rules && rule_is_on(RULE_TOUCH))
        setenv("PUMICED_MEMORY", "proc_mem", 1);
}

static void directory_of(const char *lab, char *out)
{
    snprintf(out, PATH_MAX, "%.*s/check", PATH_MAX - 8, lab);
}

int check_prepare(const struct check_options *o, const char *libraries, const char *lab)
{
    const char *before = getenv("LD_PRELOAD");
    char checker[PATH_MAX], dir[PATH_MAX], value[5 * PATH_MAX];

    if (!o->rules)
        return 0;
    snprintf(checker, sizeof(checker), "%.*s/libpumice_check.so", PATH_MAX - 32, libraries);
    if (access(checker, R_OK) != 0) {
        say("%s: %s: it belongs to Pumice's libraries", checker, strerror(errno));
        return -1;
    }
    directory_of(lab, dir);
    if (mkdir(dir, 0700) != 0) {
        say("%s: %s", dir, strerror(errno));
        return -1;
    }
    /* Behind a sanitizer, which must be first, and before the verbs library. */
    snprintf(value, sizeof(value), "%s%s%s", before ? before : "", before && before[0] ? ":" : "", checker);
    setenv("LD_PRELOAD", value, 1);
    setenv("PUMICE_CHECK", o->rules, 1);
    setenv("PUMICE_CHECK_DIR", dir, 1);
    return 0;
}

static void print_calls(const struct calls *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct place *p = &c->list[i];
        const char *word = i ? "from" : "in", *function = p->function[0] ? p->function : "?";

        if (p->file[0] && p->line > 0)
            fprintf(stderr, "    %s %s, %s:%d\n", word, function, p->file, p->line);
        else if (p->file[0])
            fprintf(stderr, "    %s %s, %s\n", word, function, p->file);
        else if (p->module[0])
            fprintf(stderr, "    %s %s, %s+0x%" PRIx64 " (no debug information)\n", word, function, p->module,
                    p->offset);
    }
}

static void print(const struct finding *f)
{
    char times[64] = "";

    if (f->count > 1)
        snprintf(times, sizeof(times), " (%" PRIu64 " times)", f->count);
    if (f->count > 1 && f->processes > 1)
        snprintf(times, sizeof(times), " (%" PRIu64 " times, in %u processes)", f->count, f->processes);
    fprintf(stderr, "  %s: %s%s\n", f->rule, f->text, times);
    print_calls(&f->where);
    if (f->other.n) {
        fprintf(stderr, "   %s:\n", f->whose);
        print_calls(&f->other);
    }
}

static void remove_files(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d)))
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
}

int check_tell(const struct check_options *o, const char *lab, int code)
{
    struct findings f;
    char dir[PATH_MAX];

    if (!o->rules)
        return code;
    directory_of(lab, dir);
    int rc = findings_read(&f, dir);
    remove_files(dir);
    if (rc) {
        say("can't read the findings in %s: %s", dir, strerror(-rc));
        return code ? code : EXIT_OWN;
    }
    if (f.n == 0)
        say("check: no findings");
    else
        say("check: %zu finding%s (%s/checks.md explains the rules)", f.n, f.n == 1 ? "" : "s", "docs");
    for (size_t i = 0; i < f.n; i++)
        print(&f.list[i]);
    if (o->report && (rc = check_report_write(o->report, &f)) != 0)
        say("--check-report: can't write %s: %s", o->report, strerror(-rc));
    bool failed = o->fail && f.n > 0;
    findings_free(&f);
    if (rc && code == 0)
        return EXIT_OWN;
    return failed && code == 0 ? EXIT_FINDINGS : code;
}
