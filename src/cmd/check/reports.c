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

/* Room for one entry more. NULL: no memory. It grows by doubling. */
static void *grow(void *list, size_t n, size_t size)
{
    return n & (n - 1) ? list : realloc(list, (n ? 2 * n : 1) * size);
}

int report_add_finding(struct report *r, const struct report_finding *f)
{
    struct report_finding *list;

    for (size_t i = 0; i < r->n_findings; i++) {
        struct report_finding *g = &r->findings[i];

        if (g->where == f->where && strcmp(g->rule, f->rule) == 0) {
            g->count = f->count;
            return 0;
        }
    }
    list = grow(r->findings, r->n_findings, sizeof(*list));
    if (!list)
        return -ENOMEM;
    r->findings = list;
    r->findings[r->n_findings++] = *f;
    return 0;
}

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

/* "F count rule where pid other whose text". A later line of a finding has its whole count. */
static int read_finding(struct report *r, char **field, unsigned n)
{
    struct report_finding f = {0};
    uint64_t where, pid, other;

    if (n != 8 || !number(field[1], 10, UINT64_MAX, &f.count) || f.count == 0 ||
        !number(field[3], 10, UINT_MAX, &where) || !number(field[4], 10, UINT_MAX, &pid) ||
        !number(field[5], 10, UINT_MAX, &other))
        return 0;
    f.where = (unsigned)where;
    f.other = (unsigned)other;
    f.other_pid = (unsigned)pid;
    snprintf(f.rule, sizeof(f.rule), "%s", field[2]);
    snprintf(f.whose, sizeof(f.whose), "%s", field[6]);
    snprintf(f.text, sizeof(f.text), "%s", field[7]);
    return report_add_finding(r, &f);
}

/* The fields of a line, all numbers but the last ones. */
static bool read_numbers(char **field, unsigned n, unsigned expected, unsigned texts, uint64_t *value)
{
    if (n != expected + texts + 1)
        return false;
    for (unsigned i = 0; i < expected; i++) {
        if (!number(field[i + 1], 10, UINT64_MAX, &value[i]))
            return false;
    }
    return true;
}

static int read_connection(struct report *r, char **field, unsigned n)
{
    struct report_connection c = {0}, *list;
    uint64_t v[14];

    if (!read_numbers(field, n, 14, 2, v))
        return 0;
    c = (struct report_connection){.context = v[0],
                                   .since = v[10],
                                   .qpn = (unsigned)v[1],
                                   .type = (unsigned)v[2],
                                   .peer = (unsigned)v[3],
                                   .path_mtu = (unsigned)v[4],
                                   .rq_psn = (unsigned)v[5],
                                   .dest_rd_atomic = (unsigned)v[6],
                                   .access = (unsigned)v[7],
                                   .sq_psn = (unsigned)v[8],
                                   .rd_atomic = (unsigned)v[9],
                                   .where = (unsigned)v[11],
                                   .ready_at = (unsigned)v[12],
                                   .access_at = (unsigned)v[13]};
    snprintf(c.gid, sizeof(c.gid), "%s", field[15]);
    snprintf(c.peer_gid, sizeof(c.peer_gid), "%s", field[16]);
    for (size_t i = r->n_connections; i > 0; i--) { /* mostly the last one */
        struct report_connection *old = &r->connections[i - 1];

        if (old->context == c.context && old->qpn == c.qpn && old->since == c.since) {
            *old = c;
            return 0;
        }
    }
    list = grow(r->connections, r->n_connections, sizeof(*list));
    if (!list)
        return -ENOMEM;
    r->connections = list;
    r->connections[r->n_connections++] = c;
    return 0;
}

static struct report_key *find_key(const struct report *r, uint64_t context, uint64_t rkey)
{
    const struct report_key like = {.key = {context, rkey}};
    struct report_key *k;

    HASH_FIND(hh, r->keys, &like.key, sizeof(like.key), k);
    return k;
}

/* The key belongs to the latest region from now on. */
static int take_key(struct report *r, uint64_t context, uint64_t rkey)
{
    struct report_key *k = find_key(r, context, rkey);

    if (!k) {
        k = calloc(1, sizeof(*k));
        if (!k)
            return -ENOMEM;
        k->key.context = context;
        k->key.rkey = rkey;
        HASH_ADD(hh, r->keys, key, sizeof(k->key), k);
    }
    k->region = r->n_regions - 1;
    return 0;
}

static int read_registered(struct report *r, char **field, unsigned n)
{
    struct report_region *list;
    uint64_t v[7];

    if (!read_numbers(field, n, 7, 0, v))
        return 0;
    list = grow(r->regions, r->n_regions, sizeof(*list));
    if (!list)
        return -ENOMEM;
    r->regions = list;
    r->regions[r->n_regions++] = (struct report_region){.since = v[0],
                                                        .context = v[1],
                                                        .rkey = (unsigned)v[2],
                                                        .addr = v[3],
                                                        .length = v[4],
                                                        .access = (unsigned)v[5],
                                                        .where = (unsigned)v[6]};
    return take_key(r, v[1], v[2]);
}

static int read_deregistered(struct report *r, char **field, unsigned n)
{
    uint64_t v[4];

    if (!read_numbers(field, n, 4, 0, v))
        return 0;
    struct report_key *k = find_key(r, v[1], v[2]);
    if (k) {
        r->regions[k->region].until = v[0];
        r->regions[k->region].gone_at = (unsigned)v[3];
        HASH_DEL(r->keys, k);
        free(k);
    }
    return 0;
}

static int read_failure(struct report *r, char **field, unsigned n)
{
    struct report_failure *list;
    uint64_t v[10];

    if (!read_numbers(field, n, 10, 0, v))
        return 0;
    list = grow(r->failures, r->n_failures, sizeof(*list));
    if (!list)
        return -ENOMEM;
    r->failures = list;
    r->failures[r->n_failures++] = (struct report_failure){.time = v[0],
                                                           .context = v[1],
                                                           .qpn = (unsigned)v[2],
                                                           .status = (unsigned)v[3],
                                                           .opcode = (unsigned)v[4],
                                                           .wr_id = v[5],
                                                           .rkey = (unsigned)v[6],
                                                           .addr = v[7],
                                                           .length = v[8],
                                                           .where = (unsigned)v[9]};
    return 0;
}

static int read_line(struct report *r, char *line)
{
    static const struct {
        const char *name;
        int (*read)(struct report *r, char **field, unsigned n);
    } kinds[] = {{"T", read_trace},      {"F", read_finding},      {"Q", read_connection},
                 {"R", read_registered}, {"U", read_deregistered}, {"E", read_failure}};
    char *field[FIELDS_MAX];
    unsigned n = 0;

    line[strcspn(line, "\n")] = 0;
    while (n < FIELDS_MAX && (field[n] = strsep(&line, "\t")))
        n++;
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(field[0], kinds[i].name) == 0)
            return kinds[i].read(r, field, n);
    }
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

static void free_keys(struct report *r)
{
    struct report_key *k, *next;

    HASH_ITER(hh, r->keys, k, next)
    {
        HASH_DEL(r->keys, k);
        free(k);
    }
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
        free_keys(&all->list[i]);
        free(all->list[i].findings);
        free(all->list[i].connections);
        free(all->list[i].regions);
        free(all->list[i].failures);
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
