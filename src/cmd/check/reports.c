// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/reports.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX (2u + 2u * REPORT_DEPTH)

/* --- lines ------------------------------------------------------------------------------------- */

/* A whole field that is a number, of at most this value. */
static bool number(const char *field, int base, uint64_t most, uint64_t *value)
{
    char *end;

    if (field[0] < '0' || (base == 10 && field[0] > '9'))
        return false;
    errno = 0;
    *value = strtoull(field, &end, base);
    return errno == 0 && *end == 0 && *value <= most;
}

/* "T id (module offset)..." */
static int read_trace(struct report *r, char **field, unsigned n)
{
    struct report_trace *t, *old;
    uint64_t id;

    if (n < 4 || n % 2 || !number(field[1], 10, UINT_MAX, &id))
        return 0;
    t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->id = (unsigned)id;
    for (unsigned i = 2; i < n; i += 2) {
        struct report_call *c = &t->at[t->n];

        if (!number(field[i + 1], 16, UINT64_MAX, &c->offset))
            break;
        c->module = strdup(field[i]);
        t->n += c->module != NULL;
    }
    HASH_FIND(hh, r->traces, &t->id, sizeof(t->id), old);
    if (old || t->n == 0) {
        for (unsigned i = 0; i < t->n; i++)
            free(t->at[i].module);
        free(t);
        return 0;
    }
    HASH_ADD(hh, r->traces, id, sizeof(t->id), t);
    return 0;
}

/* "F count rule where other whose text". A later line of a finding has its whole count. */
static int read_finding(struct report *r, char **field, unsigned n)
{
    struct report_finding f = {.other_pid = r->pid}, *list;
    uint64_t where, other;

    if (n != 7 || !number(field[1], 10, UINT64_MAX, &f.count) || f.count == 0 ||
        !number(field[3], 10, UINT_MAX, &where) || !number(field[4], 10, UINT_MAX, &other))
        return 0;
    f.where = (unsigned)where;
    f.other = (unsigned)other;
    snprintf(f.rule, sizeof(f.rule), "%s", field[2]);
    snprintf(f.whose, sizeof(f.whose), "%s", field[5]);
    snprintf(f.text, sizeof(f.text), "%s", field[6]);
    for (size_t i = 0; i < r->n_findings; i++) {
        struct report_finding *g = &r->findings[i];

        if (g->where == f.where && strcmp(g->rule, f.rule) == 0) {
            g->count = f.count;
            return 0;
        }
    }
    list = realloc(r->findings, (r->n_findings + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    r->findings = list;
    r->findings[r->n_findings++] = f;
    return 0;
}

static int read_line(struct report *r, char *line)
{
    char *field[FIELDS_MAX];
    unsigned n = 0;

    line[strcspn(line, "\n")] = 0;
    while (n < FIELDS_MAX && (field[n] = strsep(&line, "\t")))
        n++;
    if (strcmp(field[0], "T") == 0)
        return read_trace(r, field, n);
    if (strcmp(field[0], "F") == 0)
        return read_finding(r, field, n);
    return 0;
}

/* --- files ------------------------------------------------------------------------------------- */

static int read_file(struct report *r, FILE *file)
{
    char *line = NULL;
    size_t size = 0;
    int rc = 0;

    while (rc == 0 && getline(&line, &size, file) >= 0)
        rc = read_line(r, line);
    free(line);
    return rc;
}

static int read_one(struct reports *all, const char *dir, const char *name)
{
    struct report *list;
    char path[PATH_MAX];
    uint64_t pid;

    if (!number(name, 10, UINT_MAX, &pid))
        return 0;
    snprintf(path, sizeof(path), "%.*s/%.*s", PATH_MAX - 300, dir, 255, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int rc = -ENOMEM;
    list = realloc(all->list, (all->n + 1) * sizeof(*list));
    if (list) {
        all->list = list;
        list[all->n] = (struct report){.pid = (unsigned)pid};
        rc = read_file(&list[all->n++], file);
    }
    fclose(file);
    return rc;
}

int reports_read(struct reports *all, const char *dir)
{
    struct dirent **entry;
    int rc = 0, n = scandir(dir, &entry, NULL, versionsort);

    *all = (struct reports){0};
    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            rc = read_one(all, dir, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    if (rc)
        reports_free(all);
    return rc;
}

static void free_traces(struct report *r)
{
    struct report_trace *t, *next;

    HASH_ITER(hh, r->traces, t, next)
    {
        HASH_DEL(r->traces, t);
        for (unsigned i = 0; i < t->n; i++)
            free(t->at[i].module);
        free(t);
    }
}

void reports_free(struct reports *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free_traces(&all->list[i]);
        free(all->list[i].findings);
    }
    free(all->list);
    *all = (struct reports){0};
}

const struct report_trace *reports_trace(const struct reports *all, unsigned pid, unsigned id)
{
    struct report_trace *t = NULL;

    for (size_t i = 0; id && i < all->n; i++) {
        if (all->list[i].pid == pid)
            HASH_FIND(hh, all->list[i].traces, &id, sizeof(id), t);
    }
    return t;
}
