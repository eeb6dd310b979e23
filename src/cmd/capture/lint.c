// SPDX-License-Identifier: BSD-2-Clause
/* pumice lint: finds violations of the RoCEv2 protocol in a capture, and prints them. */
#include "src/cmd/capture/capture.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pcap/lint/lint.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/columns.h"

enum { LINT_CLEAN = 0, LINT_VIOLATIONS = 1, LINT_UNREADABLE = 2 }; /* exit codes */
enum { KEY_RULES = 256 };

struct options {
    struct lint_options lint;
    bool json, notes;
    const char *path;
};

static const struct argp_option arguments[] = {
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {"notes", 'n', NULL, 0, "Print notes too, not only violations", 0},
    {"incomplete", 'i', NULL, 0, "The capture may lack packets: findings that this explains become notes", 0},
    {"faulty", 'f', NULL, 0, "The network was made to damage packets: wrong ICRCs become notes", 0},
    {"tm", 't', "WHICH", 0,
     "SENDs with tag matching headers: auto (found by their rendezvous), off, or the numbers of the QPs that receive "
     "them, separated by commas",
     0},
    {"rules", KEY_RULES, NULL, 0, "List the rules and exit", 0},
    {0},
};

static const char doc[] =
    "Finds violations of the RoCEv2 protocol in a capture (pcap or pcapng; - for standard input).\v"
    "Exit status: 0 if there is no violation, 1 if there are any, 2 if the file can't be read.\n\n"
    "Examples:\n"
    "  pumice lint trace.pcapng\n"
    "  tcpdump -i lo -w - udp port 4791 | pumice lint --incomplete -\n";

static void list_rules(void)
{
    struct columns columns;

    columns_init(&columns, " ", false);
    columns_add(&columns, "", 18, 0);
    columns_add(&columns, "", 6, 0);
    columns_add(&columns, "", 18, 0);
    columns_add(&columns, "", 0, 0);
    for (unsigned i = 0; i < LINT_RULES; i++) {
        columns_row(&columns);
        columns_cell(&columns, "%s", lint_rules[i].id);
        columns_cell(&columns, "%s", lint_rules[i].severity == LINT_ERROR ? "error" : "note");
        columns_cell(&columns, "%s", lint_rules[i].spec);
        columns_cell(&columns, "%s", lint_rules[i].text);
    }
    columns_print(&columns, stdout, "", "");
    columns_fini(&columns);
}

/* Parses the argument of --tm: auto, off, or QP numbers. */
static bool parse_tm(struct lint_options *o, char *text)
{
    char *end, *rest = NULL;

    o->tm = strcmp(text, "auto") == 0 ? LINT_TM_AUTO : strcmp(text, "off") == 0 ? LINT_TM_OFF : LINT_TM_LISTED;
    if (o->tm != LINT_TM_LISTED)
        return true;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        unsigned long qpn = strtoul(word, &end, 0);

        if (*end || word[0] < '0' || word[0] > '9' || qpn > 0xffffff || o->num_tm_qps == LINT_TM_QPS_MAX)
            return false;
        o->tm_qps[o->num_tm_qps++] = (uint32_t)qpn;
    }
    return o->num_tm_qps > 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'j':
        o->json = true;
        break;
    case 'n':
        o->notes = true;
        break;
    case 'i':
        o->lint.incomplete = true;
        break;
    case 'f':
        o->lint.faulty = true;
        break;
    case 't':
        if (!parse_tm(&o->lint, arg))
            argp_error(state, "--tm: expected auto, off, or QP numbers separated by commas");
        break;
    case KEY_RULES:
        list_rules();
        exit(LINT_CLEAN);
    case ARGP_KEY_ARG:
        if (o->path)
            argp_error(state, "unexpected argument '%s': give one file", arg);
        o->path = arg;
        break;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no file given");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const char *severity_name(enum lint_severity s)
{
    return s == LINT_ERROR ? "error" : "note";
}

static void print_text(const struct options *o, const struct lint_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct lint_finding *f = &r->findings[i];

        if (f->severity == LINT_ERROR || o->notes)
            printf("%s:%u: %s: %s [%s%s%s]\n", o->path, f->frame, severity_name(f->severity), f->text,
                   lint_rules[f->rule].id, lint_rules[f->rule].spec[0] ? ", " : "", lint_rules[f->rule].spec);
    }
    printf("%s: %u frames, %u RoCEv2 packets, %u connections: %zu violations, %zu notes%s\n", o->path, r->frames,
           r->packets, r->connections, r->errors, r->notes, r->notes && !o->notes ? " (--notes shows them)" : "");
    if (r->lost)
        printf("%s: the capture itself has lost %llu packets\n", o->path, (unsigned long long)r->lost);
    if (r->faults)
        printf("%s: injected faults have lost %llu packets before the capture\n", o->path,
               (unsigned long long)r->faults);
    if (r->frames && !r->packets)
        printf("%s: no RoCEv2 packets: no UDP datagram to port 4791\n", o->path);
}

static int print_json(const struct options *o, const struct lint_result *r)
{
    json_t *findings = json_array(), *name = json_string(o->path); /* NULL: the name is not valid UTF-8 */
    json_t *root =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "file", name ? name : json_null(), "frames",
                  (json_int_t)r->frames, "packets", (json_int_t)r->packets, "connections", (json_int_t)r->connections,
                  "lost", (json_int_t)r->lost, "lost_by_faults", (json_int_t)r->faults, "errors", (json_int_t)r->errors,
                  "notes", (json_int_t)r->notes, "findings", findings);

    if (!root)
        return -ENOMEM;
    for (size_t i = 0; i < r->n; i++) {
        const struct lint_finding *f = &r->findings[i];

        if (f->severity == LINT_ERROR || o->notes)
            json_array_append_new(findings,
                                  json_pack("{s:I, s:s, s:s, s:s, s:s}", "frame", (json_int_t)f->frame, "severity",
                                            severity_name(f->severity), "rule", lint_rules[f->rule].id, "spec",
                                            lint_rules[f->rule].spec, "text", f->text));
    }
    if (r->error[0])
        json_object_set_new(root, "error", json_string(r->error));
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
    return 0;
}

int cmd_lint(int argc, char **argv)
{
    static const struct argp argp = {arguments, parse, "FILE", doc, NULL, NULL, NULL};
    struct options o = {.path = NULL};
    struct lint_result r;
    struct stat st;
    FILE *f;
    int err;

    argp_err_exit_status = LINT_UNREADABLE;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    f = strcmp(o.path, "-") == 0 ? fdopen(dup(0), "rb") : fopen(o.path, "rbe");
    if (f && fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(f);
        f = NULL;
        errno = EISDIR;
    }
    if (!f) {
        say("%s: %s", o.path, strerror(errno));
        return LINT_UNREADABLE;
    }
    err = lint_run(&r, f, &o.lint);
    if (!o.json)
        print_text(&o, &r);
    else if (print_json(&o, &r) != 0)
        err = -ENOMEM;
    if (err)
        say("%s: %s", o.path, r.error[0] ? r.error : strerror(-err));
    err = err ? LINT_UNREADABLE : r.errors ? LINT_VIOLATIONS : LINT_CLEAN;
    lint_free(&r);
    return err;
}
