// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/finding.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/check/base/inside.h"
#include "src/check/base/report.h"

#define PLACES_MAX 1000u /* findings at more places are not kept */
#define TEXT_MAX 512

static struct finding {
    enum rule rule;
    struct finding_place place; /* of the first one */
    uint64_t count;
    char text[TEXT_MAX]; /* of the first one */
} found[PLACES_MAX];
static unsigned places;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void print_trace(const struct trace *t)
{
    char text[PATH_MAX + 256];

    for (unsigned i = 0; t && i < t->n; i++) {
        report_describe(t->at[i], text, sizeof(text));
        fprintf(stderr, "pumice check:   %s %s\n", i ? "from" : "in", text);
    }
}

static void print(const struct finding *f)
{
    if (f->count > 1) {
        fprintf(stderr, "pumice check: %s: %llu times in all: %s\n", rule_name(f->rule), (unsigned long long)f->count,
                f->text);
        return;
    }
    fprintf(stderr, "pumice check: %s: %s\n", rule_name(f->rule), f->text);
    print_trace(f->place.where);
    if (f->place.other) {
        fprintf(stderr, "pumice check:   %s:\n", f->place.whose);
        print_trace(f->place.other);
    }
}

static void report(const struct finding *f)
{
    if (!report_wanted()) {
        print(f);
        return;
    }
    const struct finding_place *p = &f->place;
    unsigned where = report_trace(p->where), other = p->other_id ? p->other_id : report_trace(p->other);
    unsigned pid = p->other_id ? p->other_pid : (unsigned)getpid();

    report_line("F\t%llu\t%s\t%u\t%u\t%u\t%s\t%s\n", (unsigned long long)f->count, rule_name(f->rule), where, pid,
                other, p->whose ? p->whose : "", f->text);
}

static bool is_place(const struct trace *a, const struct trace *b)
{
    if (a == b)
        return true;
    for (unsigned i = 0; a && b && i < FINDING_FRAMES; i++) {
        if (a->at[i] != b->at[i])
            return false;
    }
    return a && b;
}

/* NULL: too many places. *is_new: this is the first one of its place. */
static struct finding *find(enum rule rule, const struct finding_place *place, bool *is_new)
{
    for (unsigned i = 0; i < places; i++) {
        if (found[i].rule == rule && is_place(found[i].place.where, place->where))
            return &found[i];
    }
    if (places == PLACES_MAX)
        return NULL;
    *is_new = true;
    found[places] = (struct finding){.rule = rule, .place = *place};
    return &found[places++];
}

void finding_add(enum rule rule, const struct finding_place *place, const char *format, ...)
{
    bool is_new = false;
    va_list ap;

    inside_enter();
    pthread_mutex_lock(&lock);
    struct finding *f = find(rule, place, &is_new);
    if (f)
        f->count++;
    if (is_new) {
        va_start(ap, format);
        vsnprintf(f->text, sizeof(f->text), format, ap);
        va_end(ap);
        report(f);
    }
    pthread_mutex_unlock(&lock);
    inside_leave();
}

void finding_end(void)
{
    inside_enter();
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < places; i++) {
        if (found[i].count > 1)
            report(&found[i]);
    }
    places = 0;
    pthread_mutex_unlock(&lock);
    inside_leave();
}

void finding_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    places = 0;
}
