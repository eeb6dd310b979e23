// SPDX-License-Identifier: BSD-2-Clause
/* pumice layout: prints the pieces of memory of a window over non-contiguous memory. The window is described in a file,
 * or belongs to a running program (layout_live.h). The engine's code computes the addresses. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/inspect/layout_file.h"
#include "src/cmd/inspect/layout_live.h"

struct layout_options {
    const char *what; /* "explain" or "list" */
    const char *file, *window;
    struct target_options target;
    bool json;
    uint64_t off, len;
    unsigned words; /* number of arguments so far */
    bool has_len;
    long most; /* pieces to print, at most */
};

static const struct argp_option options[] = {
    {"window", 'w', "NAME", 0, "Explain this window; default: the last window of the file", 0},
    {"most", 'm', "N", 0, "Print at most N pieces; default: 100", 0},
    {"json", 'j', NULL, 0, "Print JSON instead of text (only for windows of running programs)", 0},
    {0},
};

static const char doc[] = "Prints how many bytes a window over non-contiguous memory has, and where the bytes [OFFSET, "
                          "OFFSET + LENGTH) are; by default all bytes. FILE (- is stdin) describes memory regions and "
                          "windows over them. KEY is the rkey of a window of a running program; list shows these "
                          "windows.\v"
                          "To list the windows of programs, and to explain the first 16 bytes of one of them:\n"
                          "  pumice layout list\n"
                          "  pumice layout explain 0x501 0 16\n\n"
                          "A column of a matrix of 4 rows and 5 columns of 8 bytes:\n"
                          "  {\"regions\": {\"matrix\": {\"address\": \"0x1000\", \"length\": 160}},\n"
                          "   \"windows\": [{\"name\": \"column\", \"type\": \"interleaved\", \"entries\": [\n"
                          "     {\"object\": \"matrix\", \"address\": \"0x1008\", \"length\": 8,\n"
                          "      \"dimensions\": [{\"stride\": 40, \"count\": 4}]}]}]}\n\n"
                          "pumice-layout(1) describes the format of the file.";

static bool parse_bytes(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && !errno && !*end;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct layout_options *o = state->input;

    switch (key) {
    case 'w':
        o->window = arg;
        break;
    case 'm':
        o->most = parse_number(arg, 0, INT32_MAX);
        if (o->most < 0)
            argp_error(state, "--most: invalid value \"%s\": expected a number from 0 to %d", arg, INT32_MAX);
        break;
    case 'j':
        o->json = true;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case ARGP_KEY_ARG:
        if (o->words == 0 && strcmp(arg, "explain") != 0 && strcmp(arg, "list") != 0)
            argp_error(state, "unknown action '%s': expected explain or list", arg);
        else if (o->words == 0)
            o->what = arg;
        else if (strcmp(o->what, "list") == 0)
            argp_error(state, "unexpected argument '%s': list takes no arguments", arg);
        else if (o->words == 1)
            o->file = arg;
        else if (o->words == 2 && !parse_bytes(arg, &o->off))
            argp_error(state, "OFFSET: invalid value \"%s\": expected a number of bytes", arg);
        else if (o->words == 3 && !parse_bytes(arg, &o->len))
            argp_error(state, "LENGTH: invalid value \"%s\": expected a number of bytes", arg);
        else if (o->words > 3)
            argp_error(state, "unexpected argument '%s': explain takes at most three", arg);
        o->has_len = o->words == 3;
        o->words++;
        break;
    case ARGP_KEY_END:
        if (!o->what)
            argp_error(state, "no action given: expected explain or list");
        if (!o->file && strcmp(o->what, "explain") == 0)
            argp_error(state, "nothing to explain: give a FILE, - for stdin, or the KEY of a window");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static uint64_t items_of(const struct layout_entry_desc *e)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < e->ndim; d++)
        n *= e->dim[d].count;
    return n;
}

static void describe(const struct layout_file *f, const struct file_window *w)
{
    bool composite = w->desc.type == LAYOUT_COMPOSITE;

    printf("%s: %s, %" PRIu64 " bytes", w->name, composite ? "composite" : "interleaved", w->layout.total);
    if (!composite && w->desc.count > 1 && w->layout.uniform)
        printf(", rounds of %" PRIu64, w->layout.round_bytes);
    putchar('\n');
    for (uint32_t i = 0; i < w->desc.count; i++) {
        const struct layout_entry_desc *e = &w->entry[i];

        printf("  entry %u: %s, %" PRIu64 " bytes at %#" PRIx64, i, layout_file_object(f, e->object), e->length,
               e->addr);
        for (uint32_t d = 0; d < e->ndim; d++)
            printf("%s%" PRIu64 " times every %" PRIu64, d ? ", that " : ", ", e->dim[d].count, e->dim[d].stride);
        if (!composite)
            printf("; %" PRIu64 " of %" PRIu64 " in a round", e->repeat, items_of(e));
        putchar('\n');
    }
}

/* A line of output. Adjacent pieces of the same entry make one line. */
struct line {
    uint64_t off, len, addr;
    uint32_t region, depth, path[LAYOUT_MAX_DEPTH];
};

static void print_line(const struct layout_file *f, const struct line *l)
{
    printf("%12" PRIu64 " %12" PRIu64 " %#18" PRIx64 "  %-16s ", l->off, l->len, l->addr, f->region[l->region].name);
    for (uint32_t i = 0; i < l->depth; i++)
        printf("%s%u", i ? "." : "", l->path[i]);
    putchar('\n');
}

static bool joins(const struct line *a, const struct line *b)
{
    return a->region == b->region && a->addr + a->len == b->addr && a->depth == b->depth &&
           memcmp(a->path, b->path, a->depth * sizeof(a->path[0])) == 0;
}

/* Finds the next piece that is in a memory region, directly or through other windows. Returns false at the end. */
static bool next_line(const struct layout_file *f, struct layout_walk *w, struct line *out)
{
    struct layout_segment p;

    while (layout_walk_next(w, &p)) {
        if (!(p.object & WINDOW_BIT)) {
            out->depth = w->depth;
            memcpy(out->path, w->path, w->depth * sizeof(w->path[0]));
            out->region = p.object;
            out->addr = p.addr;
            out->len = p.len;
            return true;
        }
        /* This can't fail: binding has checked the depth, and that all entries are within their objects. */
        if (!layout_walk_push(w, &f->window[p.object & ~WINDOW_BIT].layout, p.addr, p.len))
            abort();
    }
    return false;
}

static void print_pieces(const struct layout_file *f, const struct file_window *w, const struct layout_options *o)
{
    struct layout_walk walk;
    struct line now = {.off = o->off}, next = {0};
    uint64_t left = o->len;
    long printed = 0;
    bool more = true;

    layout_walk_init(&walk);
    if (!layout_walk_push(&walk, &w->layout, o->off, o->len))
        abort(); /* can't happen: the caller has checked the range */
    printf("%12s %12s %18s  %-16s %s\n", "OFFSET", "LENGTH", "ADDRESS", "REGION", "ENTRY");
    while (more && printed < o->most) {
        more = next_line(f, &walk, &next);
        if (more && now.len && joins(&now, &next)) {
            now.len += next.len;
            continue;
        }
        if (now.len) {
            print_line(f, &now);
            printed++;
            left -= now.len;
        }
        next.off = now.off + now.len;
        now = next;
    }
    if (left)
        printf("... and %" PRIu64 " bytes more (--most says how many pieces are shown)\n", left);
}

static int explain(const struct layout_file *f, struct layout_options *o)
{
    const struct file_window *w = layout_file_window(f, o->window);

    if (!w) {
        say("%s: there is no window %s", o->file, o->window);
        return 1;
    }
    describe(f, w);
    if (!o->has_len)
        o->len = o->off <= w->layout.total ? w->layout.total - o->off : 0;
    if (o->off > w->layout.total || o->len > w->layout.total - o->off) {
        say("the range [%" PRIu64 ", %" PRIu64 " + %" PRIu64 ") is not within [0, %" PRIu64 ")", o->off, o->off, o->len,
            w->layout.total);
        return 1;
    }
    print_pieces(f, w, o);
    return 0;
}

/* True if the name is the key of a window: a number, and not the name of a file. */
static bool is_key(const char *name, uint32_t *key)
{
    uint64_t v;

    if (!parse_bytes(name, &v) || v == 0 || v > UINT32_MAX || access(name, F_OK) == 0)
        return false;
    *key = (uint32_t)v;
    return true;
}

int cmd_layout(int argc, char **argv)
{
    static const struct argp argp = {
        options, parse, "explain FILE|KEY [OFFSET [LENGTH]]\nlist", doc, target_options_child, NULL, NULL};
    struct layout_options o = {.most = 100, .target = TARGET_OPTIONS_NONE};
    struct layout_live live = {0};
    struct layout_file f;
    int result = 1;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (strcmp(o.what, "list") == 0 || is_key(o.file, &live.key)) {
        live.off = o.off;
        live.len = o.has_len ? o.len : UINT64_MAX;
        live.most = o.most < PM_LAYOUT_PIECES ? (uint32_t)o.most : PM_LAYOUT_PIECES;
        live.json = o.json;
        return layout_live(&live, &o.target);
    }
    if (layout_file_read(&f, o.file) == 0)
        result = explain(&f, &o);
    layout_file_free(&f);
    return result;
}
