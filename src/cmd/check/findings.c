// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/findings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/check/pairs.h"
#include "src/cmd/check/reports.h"

#define SAME_CALLS 4u /* findings of a rule are one if so many innermost calls are the same */

/* A finding that was merged, and the backtrace that stands for its place. */
struct merged {
    const struct report_finding *first;
    const struct report_trace *where, *other;
    uint64_t count;
    unsigned processes;
};

/* --- merging ----------------------------------------------------------------------------------- */

static bool is_place(const struct report_trace *a, const struct report_trace *b)
{
    if (!a || !b)
        return a == b;
    for (unsigned i = 0; i < SAME_CALLS; i++) {
        if (i >= a->n || i >= b->n)
            return a->n == b->n;
        if (a->at[i].offset != b->at[i].offset || strcmp(a->at[i].module, b->at[i].module) != 0)
            return false;
    }
    return true;
}

static struct merged *find(struct merged *list, size_t n, const char *rule, const struct report_trace *where)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].first->rule, rule) == 0 && is_place(list[i].where, where))
            return &list[i];
    }
    return NULL;
}

static size_t merge(struct merged *list, const struct reports *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct report *r = &all->list[i];

        for (size_t k = 0; k < r->n_findings; k++) {
            const struct report_finding *f = &r->findings[k];
            const struct report_trace *where = reports_trace(all, r->pid, f->where);
            struct merged *m = find(list, n, f->rule, where);

            if (!m) {
                m = &list[n++];
                *m = (struct merged){.first = f, .where = where, .other = reports_trace(all, f->other_pid, f->other)};
            }
            m->count += f->count;
            m->processes++;
        }
    }
    return n;
}

/* --- places ------------------------------------------------------------------------------------ */

static bool is_main(const struct place *p)
{
    return strcmp(p->function, "main") == 0;
}

/* Functions of the C library that call the program, for which main may have no name. */
static bool is_outside(const struct place *p)
{
    static const char *const names[] = {"__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl",
                                        "start_thread", "__clone3"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(p->function, names[i]) == 0)
            return true;
    }
    return false;
}

static int find_calls(struct calls *c, struct places *places, const struct report_trace *t)
{
    struct place raw = {0};
    bool ends = false;

    c->list = t ? calloc((size_t)t->n * PLACE_INLINED, sizeof(*c->list)) : NULL;
    if (!c->list)
        return t ? -ENOMEM : 0;
    for (unsigned i = 0; i < t->n && !ends; i++) {
        snprintf(raw.module, sizeof(raw.module), "%s", t->at[i].module);
        raw.offset = t->at[i].offset;
        size_t n = place_find(places, &raw, &c->list[c->n]);
        for (; n && !ends; n--) {
            ends = c->n && is_outside(&c->list[c->n]);
            if (!ends)
                ends = is_main(&c->list[c->n++]);
        }
    }
    struct place *less = realloc(c->list, c->n * sizeof(*less));
    if (less)
        c->list = less;
    return 0;
}

static int take(struct finding *f, const struct merged *m, struct places *places)
{
    int rc;

    f->count = m->count;
    f->processes = m->processes;
    snprintf(f->rule, sizeof(f->rule), "%s", m->first->rule);
    snprintf(f->text, sizeof(f->text), "%s", m->first->text);
    snprintf(f->whose, sizeof(f->whose), "%s", m->first->whose);
    rc = find_calls(&f->where, places, m->where);
    return rc ? rc : find_calls(&f->other, places, m->other);
}

static int take_all(struct findings *f, const struct merged *list, size_t n)
{
    struct places *places = places_new();
    int rc = places ? 0 : -ENOMEM;

    f->list = calloc(n ? n : 1, sizeof(*f->list));
    if (!f->list)
        rc = -ENOMEM;
    for (; rc == 0 && f->n < n; f->n++)
        rc = take(&f->list[f->n], &list[f->n], places);
    places_free(places);
    return rc;
}

int findings_read(struct findings *f, const char *dir)
{
    struct reports all;
    size_t n = 0;
    int rc = reports_read(&all, dir);

    *f = (struct findings){0};
    if (rc)
        return rc;
    rc = pairs_compare(&all);
    for (size_t i = 0; i < all.n; i++)
        n += all.list[i].n_findings;
    struct merged *list = calloc(n ? n : 1, sizeof(*list));
    if (rc == 0)
        rc = list ? take_all(f, list, merge(list, &all)) : -ENOMEM;
    free(list);
    reports_free(&all);
    if (rc)
        findings_free(f);
    return rc;
}

void findings_free(struct findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->list[i].where.list);
        free(f->list[i].other.list);
    }
    free(f->list);
    *f = (struct findings){0};
}
