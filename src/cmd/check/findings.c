// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/findings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/check/place.h"

#define LINE_MAX_LEN (PATH_MAX + FINDING_TEXT_MAX + 200)

/* A finding of one process. */
static struct finding *find(const struct findings *f, const struct finding *like)
{
    for (size_t i = 0; i < f->n; i++) {
        struct finding *g = &f->list[i];

        if (strcmp(g->rule, like->rule) == 0 && g->place.offset == like->place.offset &&
            strcmp(g->place.module, like->place.module) == 0)
            return g;
    }
    return NULL;
}

/* "count TAB rule TAB module TAB offset TAB text" */
static int parse(char *line, struct finding *f)
{
    char *field[5], *end;

    for (unsigned i = 0; i < 5; i++) {
        field[i] = strsep(&line, i < 4 ? "\t" : "\n");
        if (!field[i])
            return -EINVAL;
    }
    *f = (struct finding){.count = strtoull(field[0], &end, 10), .processes = 1};
    if (*end || f->count == 0)
        return -EINVAL;
    f->place.offset = strtoull(field[3], &end, 16);
    if (*end)
        return -EINVAL;
    snprintf(f->rule, sizeof(f->rule), "%s", field[1]);
    snprintf(f->place.module, sizeof(f->place.module), "%s", field[2]);
    snprintf(f->text, sizeof(f->text), "%s", field[4]);
    return 0;
}

static int append(struct findings *f, const struct finding *one)
{
    struct finding *list = realloc(f->list, (f->n + 1) * sizeof(*list));

    if (!list)
        return -ENOMEM;
    f->list = list;
    f->list[f->n++] = *one;
    return 0;
}

/* Of one process: a later line of the same finding has its whole count. */
static int read_file(struct findings *own, FILE *file)
{
    char line[LINE_MAX_LEN];
    int rc = 0;

    while (rc == 0 && fgets(line, sizeof(line), file)) {
        struct finding one, *same;

        if (parse(line, &one) != 0)
            continue;
        same = find(own, &one);
        if (same)
            same->count = one.count;
        else
            rc = append(own, &one);
    }
    return rc;
}

static int merge(struct findings *all, const struct findings *own)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < own->n; i++) {
        struct finding *same = find(all, &own->list[i]);

        if (same) {
            same->count += own->list[i].count;
            same->processes++;
        } else {
            rc = append(all, &own->list[i]);
        }
    }
    return rc;
}

static int read_one(struct findings *all, const char *dir, const char *name)
{
    struct findings own = {0};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%.*s/%.*s", PATH_MAX - 300, dir, 255, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int rc = read_file(&own, file);
    fclose(file);
    if (rc == 0)
        rc = merge(all, &own);
    findings_free(&own);
    return rc;
}

int findings_read(struct findings *f, const char *dir)
{
    struct dirent **entry;
    int rc = 0, n = scandir(dir, &entry, NULL, versionsort);

    *f = (struct findings){0};
    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++) {
        if (rc == 0 && entry[i]->d_name[0] != '.')
            rc = read_one(f, dir, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    for (size_t i = 0; rc == 0 && i < f->n; i++)
        place_find(&f->list[i].place);
    if (rc)
        findings_free(f);
    return rc;
}

void findings_free(struct findings *f)
{
    free(f->list);
    *f = (struct findings){0};
}
