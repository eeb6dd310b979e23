// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/layout_live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "src/cmd/control.h"
#include "src/cmd/fetch.h"

static long long whole(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static const char *text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

/* Large numbers and keys are texts. */
static uint64_t big(const json_t *o, const char *name)
{
    return strtoull(text(o, name), NULL, 0);
}

static void print_rights(long long access)
{
    static const struct {
        unsigned bit;
        const char *name;
    } rights[] = {{1, "local"}, {2, "remote write"}, {4, "remote read"}, {8, "remote atomic"}};
    const char *sep = "";

    for (unsigned i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        if (access & rights[i].bit) {
            printf("%s%s", sep, rights[i].name);
            sep = ", ";
        }
    }
    printf("%s", *sep ? "" : "no rights");
}

static void print_window(const char *device, const json_t *w)
{
    long long entries = whole(w, "entry_count");

    printf("%s: %s, type %lld, of %s (pid %lld)", device, text(w, "key"), whole(w, "type"), text(w, "comm"),
           whole(w, "pid"));
    if (!json_is_true(json_object_get(w, "bound"))) {
        printf(": not bound, up to %lld entries\n", whole(w, "max_entries"));
        return;
    }
    printf(": %" PRIu64 " bytes, ", big(w, "length"));
    print_rights(whole(w, "access"));
    if (json_object_get(w, "region"))
        printf("; of region %s, from %s on", text(w, "region"), text(w, "start"));
    else
        printf("; %lld %s", entries, entries == 1 ? "entry" : "entries");
    if (whole(w, "depth") > 1)
        printf(", %lld levels", whole(w, "depth"));
    if (entries > 1 && big(w, "round") && big(w, "round") != big(w, "length"))
        printf(", rounds of %" PRIu64, big(w, "round"));
    if (json_is_integer(json_object_get(w, "qpn")))
        printf("; bound to QP 0x%06llx", whole(w, "qpn"));
    putchar('\n');
}

static void print_entry(size_t i, const json_t *e)
{
    const json_t *d;
    size_t k;

    printf("  entry %zu: %s %s, %" PRIu64 " bytes at %s", i, text(e, "kind"), text(e, "object"), big(e, "length"),
           text(e, "address"));
    json_array_foreach(json_object_get(e, "dimensions"), k, d)
    {
        printf("%s%" PRIu64 " times every %" PRIu64, k ? ", that " : ", ", big(d, "count"), big(d, "stride"));
    }
    if (big(e, "items") > 1)
        printf("; %" PRIu64 " of %" PRIu64 " in a round", big(e, "repeat"), big(e, "items"));
    putchar('\n');
}

static void print_piece(const json_t *p)
{
    const json_t *number;
    size_t i;

    printf("%12" PRIu64 " %12" PRIu64 " %#18" PRIx64 "  %-16s ", big(p, "offset"), big(p, "length"), big(p, "address"),
           text(p, "object"));
    json_array_foreach(json_object_get(p, "path"), i, number)
    {
        printf("%s%lld", i ? "." : "", json_integer_value(number));
    }
    putchar('\n');
}

/* The exit code. */
static int explain(const struct layout_live *l, const json_t *w)
{
    uint64_t start = big(w, "start"), length = big(w, "length");
    const char *rest = text(w, "rest");
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(w, "entries"), i, item)
    {
        print_entry(i, item);
    }
    if (!json_is_true(json_object_get(w, "bound")))
        return 1;
    if (l->off < start || l->off - start > length || (l->len != UINT64_MAX && l->len > length - (l->off - start))) {
        say("not all of that is within [%" PRIu64 ", %" PRIu64 " + %" PRIu64 ")", start, start, length);
        return 1;
    }
    printf("%12s %12s %18s  %-16s %s\n", "OFFSET", "LENGTH", "ADDRESS", "OBJECT", "ENTRY");
    json_array_foreach(json_object_get(w, "pieces"), i, item)
    {
        print_piece(item);
    }
    if (strcmp(rest, "more") == 0)
        puts("... and more (--most says how many pieces are shown)");
    if (strcmp(rest, "gone") == 0)
        puts("... the next byte can't be reached: its object is not any more what it was when the window was bound");
    return strcmp(rest, "gone") == 0;
}

/* Prints the windows of a document, and returns how many there are. *code becomes 1 if something is not right. */
static unsigned print_host(const struct layout_live *l, const json_t *document, int *code)
{
    const json_t *device, *w;
    unsigned n = 0;
    size_t i, k;

    json_array_foreach(json_object_get(document, "devices"), i, device)
    {
        json_array_foreach(json_object_get(device, "windows"), k, w)
        {
            n++;
            if (l->json)
                continue;
            print_window(text(device, "name"), w);
            if (l->key && explain(l, w) != 0)
                *code = 1;
        }
    }
    return n;
}

int layout_live(const struct layout_live *l, const struct which *which)
{
    struct pm_layout_req req = {.key = l->key, .pieces = l->most, .off = l->off, .len = l->len};
    json_t *hosts = json_array(), *root;
    char path[SOCKET_PATH_MAX];
    struct targets t;
    unsigned windows = 0;
    int code = 0;

    if (which_find(which, &t) != 0)
        return 1;
    for (unsigned i = 0; i < t.n; i++) {
        json_t *document, *host;

        targets_socket(&t, i, path);
        document = fetch_document(path, PM_OP_LAYOUT, &req, sizeof(req));
        if (!document) {
            code = 1;
            continue;
        }
        if (!l->json && t.first >= 0 && t.n > 1)
            printf("=== host %u\n", (unsigned)t.first + i);
        windows += print_host(l, document, &code);
        host = json_pack("{s:s, s:o}", "socket", path, "layouts", document);
        if (t.first >= 0)
            json_object_set_new(host, "host", json_integer(t.first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    root = json_pack("{s:o}", "hosts", hosts);
    if (l->json) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (windows == 0 && code == 0 && l->key == 0) {
        puts("no program has a window that can be bound to layouts");
    }
    if (windows == 0 && code == 0 && l->key) {
        say("no program has a window with the key 0x%x", l->key);
        code = 1;
    }
    json_decref(root);
    return code;
}
