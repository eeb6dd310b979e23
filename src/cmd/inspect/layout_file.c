// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/layout_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"

static const struct layout_limits limits = {.caps = LAYOUT_CAP_ALL,
                                            .max_entries = LAYOUT_MAX_ENTRIES,
                                            .max_dims = LAYOUT_MAX_DIMS,
                                            .max_depth = LAYOUT_MAX_DEPTH};

/* Reads a number that is not negative: a JSON integer, or a string with a decimal or hexadecimal number. The string is
 * needed because JSON has no hexadecimal numbers, and this JSON library no numbers from 2^63 on. Returns 0 or -1. */
static int number(const json_t *j, uint64_t *out)
{
    const char *text = json_string_value(j);
    char *end;

    if (json_is_integer(j) && json_integer_value(j) >= 0) {
        *out = (uint64_t)json_integer_value(j);
        return 0;
    }
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return errno || *end ? -1 : 0;
}

/* Reads the member `name` of an object. If it is missing, uses *otherwise; if otherwise is NULL, that is an error. */
static int member(const json_t *j, const char *what, const char *name, const uint64_t *otherwise, uint64_t *out)
{
    const json_t *value = json_object_get(j, name);

    if (!value && otherwise) {
        *out = *otherwise;
        return 0;
    }
    if (number(value, out) == 0)
        return 0;
    say("%s: \"%s\" must be %sa number, such as 4096 or \"0x1000\"", what, name, value ? "" : "given, ");
    return -1;
}

/* Refuses members with unknown names, so that a mistyped name is not silently ignored. */
static int only(const json_t *j, const char *what, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)j, key, value) {
        const char *const *k = known;

        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k) {
            say("%s: unknown member \"%s\"", what, key);
            return -1;
        }
    }
    return 0;
}

static int read_regions(struct layout_file *f, const json_t *regions)
{
    static const char *const known[] = {"address", "length", NULL};
    const char *name;
    json_t *j;

    if (!json_is_object(regions)) {
        say("\"regions\" must be an object: {\"NAME\": {\"address\": A, \"length\": L}, ...}");
        return -1;
    }
    f->region = calloc(json_object_size(regions) + 1, sizeof(*f->region));
    if (!f->region)
        return -1;
    json_object_foreach ((json_t *)regions, name, j) {
        struct file_region *r = &f->region[f->regions];

        if (member(j, name, "address", NULL, &r->addr) != 0 || member(j, name, "length", NULL, &r->length) != 0 ||
            only(j, name, known) != 0)
            return -1;
        if (r->addr + r->length < r->addr) {
            say("%s: the end of the region is beyond 64 bits", name);
            return -1;
        }
        r->name = strdup(name);
        if (!r->name)
            return -1;
        f->regions++;
    }
    return 0;
}

static int find_object(const struct layout_file *f, const char *name, uint32_t *object)
{
    for (uint32_t i = f->windows; i-- > 0;)
        if (strcmp(f->window[i].name, name) == 0) {
            *object = WINDOW_BIT | i;
            return 0;
        }
    for (uint32_t i = 0; i < f->regions; i++)
        if (strcmp(f->region[i].name, name) == 0) {
            *object = i;
            return 0;
        }
    return -1;
}

static int read_dims(struct layout_entry_desc *e, const char *what, const json_t *dims)
{
    static const char *const known[] = {"stride", "count", NULL};
    size_t i;
    json_t *j;

    if (dims && !json_is_array(dims)) {
        say("%s: \"dimensions\" must be a list: [{\"stride\": S, \"count\": N}, ...]", what);
        return -1;
    }
    e->ndim = (uint32_t)json_array_size(dims);
    json_array_foreach (dims, i, j) {
        struct layout_dim dim;

        if (member(j, what, "stride", NULL, &dim.stride) != 0 || member(j, what, "count", NULL, &dim.count) != 0 ||
            only(j, what, known) != 0)
            return -1;
        if (i < LAYOUT_MAX_DIMS) /* if there are more, layout_check reports it */
            e->dim[i] = dim;
    }
    return 0;
}

static int read_entry(const struct layout_file *f, struct layout_entry_desc *e, const char *what, const json_t *j)
{
    static const char *const known[] = {"object", "address", "length", "repeat", "dimensions", NULL};
    static const uint64_t once = 1;
    const char *name = json_string_value(json_object_get(j, "object"));

    if (!name || find_object(f, name, &e->object) != 0) {
        say("%s: \"object\" must name a region, or a window that comes before%s%s", what, name ? ", but is " : "",
            name ? name : "");
        return -1;
    }
    return member(j, what, "address", NULL, &e->addr) != 0 || member(j, what, "length", NULL, &e->length) != 0 ||
                   member(j, what, "repeat", &once, &e->repeat) != 0 ||
                   read_dims(e, what, json_object_get(j, "dimensions")) != 0 || only(j, what, known) != 0
               ? -1
               : 0;
}

static struct layout_object object_of(const struct layout_file *f, uint32_t object)
{
    if (object & WINDOW_BIT) {
        const struct file_window *w = &f->window[object & ~WINDOW_BIT];

        return (struct layout_object){
            .kind = LAYOUT_MW, .depth = w->depth, .bound = true, .length = w->layout.total, .grants = UINT32_MAX};
    }
    return (struct layout_object){.kind = LAYOUT_MR,
                                  .may_bind = true,
                                  .grants = UINT32_MAX,
                                  .start = f->region[object].addr,
                                  .length = f->region[object].length};
}

static int bind_window(const struct layout_file *f, struct file_window *w)
{
    uint32_t i = 0;
    enum layout_error err = layout_check(&w->desc, &limits, &i, NULL);

    if (!err)
        for (i = 0; i < w->desc.count; i++) {
            struct layout_object o = object_of(f, w->entry[i].object);

            err = layout_check_object(&w->entry[i], &o, &limits, 0, 0, &w->depth);
            if (err)
                break;
        }
    if (err) {
        say("%s, entry %u: %s", w->name, i, layout_error_text(err));
        return -1;
    }
    layout_bind(&w->layout, w->bound, &w->desc);
    return 0;
}

static int read_type(struct file_window *w, const json_t *type)
{
    const char *text = json_string_value(type);

    if (text && strcmp(text, "composite") == 0)
        w->desc.type = LAYOUT_COMPOSITE;
    else if (text && strcmp(text, "interleaved") == 0)
        w->desc.type = LAYOUT_INTERLEAVED;
    else {
        say("%s: \"type\" must be composite or interleaved", w->name);
        return -1;
    }
    return 0;
}

static int read_window(struct layout_file *f, const json_t *j)
{
    static const char *const known[] = {"name", "type", "entries", NULL};
    struct file_window *w = &f->window[f->windows];
    const char *name = json_string_value(json_object_get(j, "name"));
    const json_t *entries = json_object_get(j, "entries");
    size_t i, n = json_array_size(entries);
    json_t *e;

    if (!name || !json_is_array(entries)) {
        say("window %u must have a \"name\" and \"entries\"", f->windows);
        return -1;
    }
    w->name = strdup(name);
    w->entry = calloc(n + 1, sizeof(*w->entry));
    w->bound = calloc(n + 1, sizeof(*w->bound));
    w->desc.entry = w->entry;
    w->desc.count = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    if (!w->name || !w->entry || !w->bound || only(j, name, known) != 0 ||
        read_type(w, json_object_get(j, "type")) != 0)
        return -1;
    json_array_foreach (entries, i, e) {
        char what[128];

        snprintf(what, sizeof(what), "%.90s, entry %zu", name, i);
        if (read_entry(f, &w->entry[i], what, e) != 0)
            return -1;
    }
    return bind_window(f, w);
}

int layout_file_read(struct layout_file *f, const char *path)
{
    static const char *const known[] = {"regions", "windows", NULL};
    bool standard = strcmp(path, "-") == 0;
    json_error_t error;
    json_t *root = standard ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &error)
                            : json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    json_t *windows = json_object_get(root, "windows"), *j;
    int result = -1;
    size_t i;

    memset(f, 0, sizeof(*f));
    if (!root) {
        if (error.line > 0)
            say("%s:%d: %s", standard ? "(stdin)" : path, error.line, error.text);
        else
            say("%s", error.text);
        return -1;
    }
    if (json_array_size(windows) == 0) {
        say("%s: must be an object with \"windows\", a list of at least one window", path);
        goto out;
    }
    f->window = calloc(json_array_size(windows), sizeof(*f->window));
    if (!f->window || only(root, path, known) != 0 || read_regions(f, json_object_get(root, "regions")) != 0)
        goto out;
    json_array_foreach (windows, i, j) {
        result = read_window(f, j);
        f->windows++; /* even after an error, so that layout_file_free finds the window */
        if (result != 0)
            break;
    }
out:
    json_decref(root);
    return result;
}

void layout_file_free(struct layout_file *f)
{
    for (uint32_t i = 0; i < f->regions; i++)
        free(f->region[i].name);
    for (uint32_t i = 0; i < f->windows; i++) {
        free(f->window[i].name);
        free(f->window[i].entry);
        free(f->window[i].bound);
    }
    free(f->region);
    free(f->window);
}

const struct file_window *layout_file_window(const struct layout_file *f, const char *name)
{
    for (uint32_t i = f->windows; i-- > 0;)
        if (!name || strcmp(f->window[i].name, name) == 0)
            return &f->window[i];
    return NULL;
}

const char *layout_file_object(const struct layout_file *f, uint32_t object)
{
    return object & WINDOW_BIT ? f->window[object & ~WINDOW_BIT].name : f->region[object].name;
}
