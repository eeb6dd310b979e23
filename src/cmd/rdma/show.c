// SPDX-License-Identifier: BSD-2-Clause
/* pumice dev, link and res: parses the words, gets the status documents, and prints rows as text or JSON. */
#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/abi.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/rdma/filter_pairs.h"
#include "src/cmd/rdma/rdma.h"
#include "src/cmd/rdma/rows.h"

enum subject { SUBJECT_DEV, SUBJECT_LINK, SUBJECT_RES };

struct show {
    enum subject subject;
    bool json, pretty, details;
    struct target_options target;
    const struct row_kind *kind; /* SUBJECT_RES; NULL: numbers of objects */
    const char *device; /* NULL: all */
    size_t device_len;
    struct filter_pairs filters;
    char *words[3 + 2 * FILTER_PAIRS_MAX];
    unsigned num_words;
};

/* --- words ------------------------------------------------------------------------------------- */

/* A device, or a device with its only port. */
static void choose_device(struct show *o, const struct argp_state *state, const char *text)
{
    const char *slash = strchr(text, '/');

    if (slash && strcmp(slash, "/1") != 0 && strcmp(slash, "/-") != 0)
        argp_error(state, "invalid port \"%s\": expected DEVICE/1, because each device has the port 1 only", text);
    o->device = text;
    o->device_len = slash ? (size_t)(slash - text) : strlen(text);
}

static void list_kinds(char *out, size_t size)
{
    size_t n = 0;

    for (const struct row_kind *k = row_kinds; k->name; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", k->name);
}

static void parse_filter(struct show *o, const struct argp_state *state, const char *name, const char *values)
{
    if (!values)
        argp_error(state, "filter \"%s\" has no value: expected %s VALUE[,VALUE...]", name, name);
    if (filter_pairs_add(&o->filters, o->kind->fields, name, values) != 0)
        argp_error(state, "invalid filter \"%s\": expected at most %u of these fields: %s", name, FILTER_PAIRS_MAX,
                   o->kind->fields);
}

/* [show|list] [KIND] [link|dev] [DEVICE[/1]] [FIELD VALUES]... */
static void parse_words(struct show *o, const struct argp_state *state)
{
    char **w = o->words, kinds[128];

    if (*w && (strcmp(*w, "show") == 0 || strcmp(*w, "list") == 0))
        w++;
    if (o->subject == SUBJECT_RES && *w && (o->kind = row_kind_find(*w)) != NULL)
        w++;
    if (o->kind && *w && (strcmp(*w, "link") == 0 || strcmp(*w, "dev") == 0)) {
        if (!w[1])
            argp_error(state, "\"%s\" has no device: expected %s DEVICE", *w, *w);
        choose_device(o, state, w[1]);
        w += 2;
    } else if (!o->kind && *w) {
        choose_device(o, state, *w++);
    }
    for (; o->kind && *w; w += w[1] ? 2 : 1)
        parse_filter(o, state, w[0], w[1]);
    if (*w) {
        list_kinds(kinds, sizeof(kinds));
        argp_error(state, "unexpected argument \"%s\"%s%s", *w,
                   o->subject == SUBJECT_RES ? ": expected one kind of objects: " : "",
                   o->subject == SUBJECT_RES ? kinds : "");
    }
}

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {"pretty", 'p', NULL, 0, "With --json: one field in a line", 0},
    {"details", 'd', NULL, 0, "Print more fields", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct show *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case 'j':
        o->json = true;
        break;
    case 'p':
        o->pretty = true;
        break;
    case 'd':
        o->details = true;
        break;
    case ARGP_KEY_ARG:
        if (o->num_words + 1 == sizeof(o->words) / sizeof(o->words[0]))
            argp_error(state, "too many arguments");
        o->words[o->num_words++] = arg;
        break;
    case ARGP_KEY_END:
        parse_words(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* --- rows -------------------------------------------------------------------------------------- */

static void add_objects(const struct show *o, const json_t *device, unsigned index, json_t *rows)
{
    const json_t *object;
    size_t i;

    json_array_foreach (json_object_get(device, o->kind->list), i, object) {
        json_t *row = row_object(o->kind, device, index, object);

        if (row && filter_pairs_match(&o->filters, row))
            json_array_append(rows, row);
        json_decref(row);
    }
}

static void add_device(const struct show *o, const json_t *device, unsigned index, json_t *rows)
{
    if (o->kind)
        add_objects(o, device, index, rows);
    else if (o->subject == SUBJECT_DEV)
        json_array_append_new(rows, row_dev(device, index, o->details));
    else if (o->subject == SUBJECT_LINK)
        json_array_append_new(rows, row_link(device, index, o->details));
    else
        json_array_append_new(rows, row_summary(device, index));
}

/* The rows of one daemon. *found becomes true if it has the wanted device. */
static json_t *rows_of(const struct show *o, const json_t *status, bool *found)
{
    json_t *rows = json_array(), *device;
    size_t i;

    json_array_foreach (json_object_get(status, "devices"), i, device) {
        const char *name = json_string_value(json_object_get(device, "name"));

        if (o->device && (strlen(name) != o->device_len || memcmp(name, o->device, o->device_len) != 0))
            continue;
        *found = true;
        json_object_set_new(device, "cm_ids", rows_cm_ids(status, name));
        add_device(o, device, (unsigned)i, rows);
    }
    return rows;
}

/* --- text -------------------------------------------------------------------------------------- */

static void print_value(const json_t *value)
{
    const json_t *item;
    size_t i;

    if (json_is_string(value))
        fputs(json_string_value(value), stdout);
    else if (json_is_array(value))
        json_array_foreach (value, i, item) {
            fputs(i ? "," : "", stdout);
            print_value(item);
        }
    else
        json_dumpf(value, stdout, JSON_ENCODE_ANY);
}

/* As the rdma tool begins a line: with the index and the name, with `link NAME/PORT`, or with `dev NAME`. */
static void print_row(const struct show *o, json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "ifname")), *field;
    const json_t *port = json_object_get(row, "port");
    json_t *value;

    if (port)
        printf("link %s/%d ", name, (int)json_integer_value(port));
    else if (o->kind)
        printf("dev %s ", name);
    else
        printf("%d: %s: ", (int)json_integer_value(json_object_get(row, "ifindex")), name);
    json_object_foreach (row, field, value) {
        if (strcmp(field, "ifindex") == 0 || strcmp(field, "ifname") == 0 || strcmp(field, "port") == 0)
            continue;
        printf("%s ", field);
        print_value(value);
        putchar(' ');
    }
    putchar('\n');
}

/* Prints the rows of one host, or adds them to all. */
static void put_rows(const struct show *o, const struct targets *t, unsigned i, json_t *rows, json_t *all)
{
    json_t *row;
    size_t k;

    if (!o->json && t->n > 1)
        printf("%s=== host %u\n", i ? "\n" : "", (unsigned)t->first + i);
    json_array_foreach (rows, k, row) {
        if (!o->json)
            print_row(o, row);
        else if (t->n > 1)
            json_object_set_new(row, "host", json_integer(t->first + (json_int_t)i));
    }
    json_array_extend(all, rows);
}

static int run(struct show *o, const struct argp *argp, int argc, char **argv)
{
    char path[SOCKET_PATH_MAX];
    json_t *all = json_array();
    bool found = false;
    struct targets t;
    int code = 0;

    o->target = (struct target_options)TARGET_OPTIONS_NONE;
    argp_parse(argp, argc, argv, 0, NULL, o);
    if (target_options_find(&o->target, &t) != 0)
        return 1;
    for (unsigned i = 0; i < t.n; i++) {
        targets_socket(&t, i, path);
        json_t *status = control_fetch(path, PM_OP_STATUS, NULL, 0);
        if (!status) {
            code = 1;
            continue;
        }
        json_t *rows = rows_of(o, status, &found);
        put_rows(o, &t, i, rows, all);
        json_decref(rows);
        json_decref(status);
    }
    if (o->json) {
        json_dumpf(all, stdout, o->pretty ? JSON_INDENT(4) : JSON_COMPACT);
        putchar('\n');
    }
    json_decref(all);
    if (o->device && !found && code == 0) {
        fprintf(stderr, "pumice: there is no device \"%.*s\": `pumice dev` shows all\n", (int)o->device_len, o->device);
        return 1;
    }
    return code;
}

int cmd_dev(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse,
                                     "[show] [DEVICE]",
                                     "Shows devices, with the words and JSON fields of `rdma dev`.\v"
                                     "Examples:\n"
                                     "  pumice dev\n"
                                     "  pumice dev show pumice0 --json\n",
                                     target_options_child,
                                     NULL,
                                     NULL};
    struct show o = {.subject = SUBJECT_DEV};

    return run(&o, &argp, argc, argv);
}

int cmd_link(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse,
                                     "[show] [DEVICE/1]",
                                     "Shows the ports of devices, with the words and JSON fields of `rdma link`.\v"
                                     "Examples:\n"
                                     "  pumice link\n"
                                     "  pumice link show pumice0/1 --json\n",
                                     target_options_child,
                                     NULL,
                                     NULL};
    struct show o = {.subject = SUBJECT_LINK};

    return run(&o, &argp, argc, argv);
}

int cmd_res(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[show] [DEVICE]\n[show] qp|cq|mr|pd|srq|cm_id|ctx|mw|xrcd|tm [dev DEVICE] [FIELD VALUE[,VALUE...]]...",
        "Shows how many objects the programs have, or the objects of one kind, with the words and JSON fields of `rdma "
        "res`. Fields select objects: by a number, a range of numbers, or a text.\v"
        "Examples:\n"
        "  pumice res\n"
        "  pumice res show qp pid 1234\n"
        "  pumice res show qp state RTS,SQD lqpn 17-100 --json\n"
        "  pumice res show pd dev pumice0\n",
        target_options_child,
        NULL,
        NULL};
    struct show o = {.subject = SUBJECT_RES};

    return run(&o, &argp, argc, argv);
}
