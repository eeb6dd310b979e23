// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/layout_live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/json_member.h"
#include "src/cmd/common/targets.h"

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
    long long entries = member_whole(w, "entry_count");

    printf("%s: %s, type %lld, of %s (pid %lld)", device, member_text(w, "key"), member_whole(w, "type"),
           member_text(w, "comm"), member_whole(w, "pid"));
    if (!json_is_true(json_object_get(w, "bound"))) {
        printf(": not bound, up to %lld entries\n", member_whole(w, "max_entries"));
        return;
    }
    printf(": %" PRIu64 " bytes, ", member_u64(w, "length"));
    print_rights(member_whole(w, "access"));
    if (json_object_get(w, "region"))
        printf("; of region %s, from %s on", member_text(w, "region"), member_text(w, "start"));
    else
        printf("; %lld %s", entries, entries == 1 ? "entry" : "entries");
    if (member_whole(w, "depth") > 1)
        printf(", %lld levels", member_whole(w, "depth"));
    if (entries > 1 && member_u64(w, "round") && member_u64(w, "round") != member_u64(w, "length"))
        printf(", rounds of %" PRIu64, member_u64(w, "round"));
    if (json_is_integer(json_object_get(w, "qpn")))
        printf("; bound to QP 0x%06llx", member_whole(w, "qpn"));
    putchar('\n');
}

static void print_entry(size_t i, const json_t *e)
{
    const json_t *d;
    size_t k;

    printf("  entry %zu: %s %s, %" PRIu64 " bytes at %s", i, member_text(e, "kind"), member_text(e, "object"),
           member_u64(e, "length"), member_text(e, "address"));
    json_array_foreach (json_object_get(e, "dimensions"), k, d) {
        printf("%s%" PRIu64 " times every %" PRIu64, k ? ", that " : ", ", member_u64(d, "count"),
               member_u64(d, "stride"));
    }
    if (member_u64(e, "items") > 1)
        printf("; %" PRIu64 " of %" PRIu64 " in a round", member_u64(e, "repeat"), member_u64(e, "items"));
    putchar('\n');
}

static void print_piece(const json_t *p)
{
    const json_t *number;
    size_t i;

    printf("%12" PRIu64 " %12" PRIu64 " %#18" PRIx64 "  %-16s ", member_u64(p, "offset"), member_u64(p, "length"),
           member_u64(p, "address"), member_text(p, "object"));
    json_array_foreach (json_object_get(p, "path"), i, number) {
        printf("%s%lld", i ? "." : "", json_integer_value(number));
    }
    putchar('\n');
}

/* Prints where the bytes of a window are. Returns the exit code. */
static int explain(const struct layout_live *l, const json_t *w)
{
    uint64_t start = member_u64(w, "start"), length = member_u64(w, "length");
    const char *rest = member_text(w, "rest");
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(w, "entries"), i, item) {
        print_entry(i, item);
    }
    if (!json_is_true(json_object_get(w, "bound")))
        return 1;
    if (l->off < start || l->off - start > length || (l->len != UINT64_MAX && l->len > length - (l->off - start))) {
        say("the range is not within [%" PRIu64 ", %" PRIu64 " + %" PRIu64 ")", start, start, length);
        return 1;
    }
    printf("%12s %12s %18s  %-16s %s\n", "OFFSET", "LENGTH", "ADDRESS", "OBJECT", "ENTRY");
    json_array_foreach (json_object_get(w, "pieces"), i, item) {
        print_piece(item);
    }
    if (strcmp(rest, "more") == 0)
        puts("... and more (--most says how many pieces are shown)");
    if (strcmp(rest, "gone") == 0)
        puts("... the next byte can't be reached: its object has changed since the window was bound");
    return strcmp(rest, "gone") == 0;
}

/* Prints the windows of a document. Returns their number. Sets *code to 1 on an error. */
static unsigned print_host(const struct layout_live *l, const json_t *document, int *code)
{
    const json_t *device, *w;
    unsigned n = 0;
    size_t i, k;

    json_array_foreach (json_object_get(document, "devices"), i, device) {
        json_array_foreach (json_object_get(device, "windows"), k, w) {
            n++;
            if (l->json)
                continue;
            print_window(member_text(device, "name"), w);
            if (l->key && explain(l, w) != 0)
                *code = 1;
        }
    }
    return n;
}

int layout_live(const struct layout_live *l, const struct target_options *target)
{
    struct pm_layout_req req = {.key = l->key, .pieces = l->most, .off = l->off, .len = l->len};
    json_t *hosts = json_array();
    char path[SOCKET_PATH_MAX];
    struct targets t;
    unsigned windows = 0;
    int code = 0;

    if (target_options_find(target, &t) != 0)
        return 1;
    for (unsigned i = 0; i < t.n; i++) {
        targets_socket(&t, i, path);
        json_t *document = control_fetch(path, PM_OP_LAYOUT, &req, sizeof(req));
        if (!document) {
            code = 1;
            continue;
        }
        if (!l->json && t.first >= 0 && t.n > 1)
            printf("=== host %u\n", (unsigned)t.first + i);
        windows += print_host(l, document, &code);
        json_t *host = json_pack("{s:s, s:o}", "socket", path, "layouts", document);
        if (t.first >= 0)
            json_object_set_new(host, "host", json_integer(t.first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    json_t *root = json_pack("{s:o}", "hosts", hosts);
    if (l->json) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (windows == 0 && code == 0 && l->key == 0) {
        puts("no program has a window that can be bound to a layout");
    }
    if (windows == 0 && code == 0 && l->key) {
        say("no program has a window with the key 0x%x (only root and the daemon's user see all users' windows)",
            l->key);
        code = 1;
    }
    json_decref(root);
    return code;
}
