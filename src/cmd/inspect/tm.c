// SPDX-License-Identifier: BSD-2-Clause
/* pumice tm: prints matching lists, their traces, and the reason of each decision about a message. */
#include "src/cmd/inspect/inspect.h"

#include <argp.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"
#include "src/cmd/common/json_member.h"
#include "src/cmd/common/target_options.h"
#include "src/cmd/inspect/tm_replay.h"

#define EVENTS 40 /* default number of events to print */

struct tm_options {
    const char *what; /* "list", "trace", "why" or "replay" */
    const char *input; /* file with a saved trace; NULL: ask daemons */
    struct tm_replay_options replay;
    int contradictions; /* that replay has found; -1: a list could not be replayed */
    bool json;
    struct target_options target;
    long srq, number; /* -1: not given */
    uint64_t qp, tag;
    bool has_qp, has_tag;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON instead of text", 0},
    {"number", 'n', "N", 0, "At most N entries or events, 0: all; default: 40 events", 0},
    {"srq", 's', "N", 0, "Only the list of this SRQ", 0},
    {"qp", 'q', "QPN", 0, "Only messages to this QP (trace, why)", 0},
    {"tag", 't', "TAG", 0, "Only entries and messages with this tag", 0},
    {"step", 'k', "N", 0, "Print the list as it was after event N (replay)", 0},
    {"check", 'c', NULL, 0, "Print only contradictions to the rules, and a summary (replay)", 0},
    {"input", 'i', "FILE", 0, "Read the output of 'pumice tm trace -n 0 --json' instead of asking daemons (replay)", 0},
    {0},
};

static const char doc[] =
    "Shows tag matching (TM-SRQs) of running programs.\n\n"
    "  list   synchronization, counters and entries of each matching list\n"
    "  trace  past events in order: operations, matches, counts\n"
    "  why    for each message one line: the decision and its reason\n"
    "  replay run the trace again: the list after each step, and whether all decisions were right\v"
    "Examples:\n"
    "  pumice tm list\n"
    "  pumice tm why --tag 0x1234\n"
    "  pumice tm trace -n 0 --json > trace.json\n"
    "  pumice tm replay --step 17 --input trace.json\n";

/* Parses a decimal or hexadecimal (0x…) number. */
static uint64_t parse_u64(struct argp_state *state, const char *name, const char *text)
{
    char *end;
    uint64_t v = strtoull(text, &end, 0);

    if (!*text || *end)
        argp_error(state, "--%s: invalid value \"%s\": expected a number", name, text);
    return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct tm_options *o = state->input;

    switch (key) {
    case 'j':
        o->json = true;
        break;
    case 'n':
    case 's':
        *(key == 'n' ? &o->number : &o->srq) = parse_number(arg, 0, 1 << 20);
        if ((key == 'n' ? o->number : o->srq) < 0)
            argp_error(state, "--%s: invalid value \"%s\": expected a number from 0 to %d",
                       key == 'n' ? "number" : "srq", arg, 1 << 20);
        break;
    case 'q':
        o->qp = parse_u64(state, "qp", arg);
        o->has_qp = true;
        break;
    case 't':
        o->tag = parse_u64(state, "tag", arg);
        o->has_tag = true;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->target;
        break;
    case 'k':
        o->replay.step = parse_number(arg, 0, INT32_MAX);
        if (o->replay.step < 0)
            argp_error(state, "--step: invalid value \"%s\": expected the number of an event", arg);
        break;
    case 'c':
        o->replay.check = true;
        break;
    case 'i':
        o->input = arg;
        break;
    case ARGP_KEY_ARG:
        if (o->what || (strcmp(arg, "list") && strcmp(arg, "trace") && strcmp(arg, "why") && strcmp(arg, "replay")))
            argp_error(state, "unexpected argument '%s': give one of list, trace, why and replay", arg);
        o->what = arg;
        break;
    case ARGP_KEY_END:
        if (!o->what)
            argp_error(state, "no action given: expected list, trace, why or replay");
        if (strcmp(o->what, "replay") != 0 && (o->input || o->replay.check || o->replay.step >= 0))
            argp_error(state, "--step, --check and --input work only with replay");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* --- members of documents ----------------------------------------------------------------------------------------- */

/* True if the member has this value. The member is the text of a 64-bit number. */
static bool has_value(const json_t *o, const char *name, uint64_t v)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s && strtoull(s, NULL, 0) == v;
}

static bool wanted(const struct tm_options *o, const json_t *row)
{
    if (o->has_tag && !has_value(row, "tag", o->tag))
        return false;
    return !o->has_qp || (json_object_get(row, "qpn") && (uint64_t)member_whole(row, "qpn") == o->qp);
}

/* Prints the age of an entry or event: "1.234 ms ago". */
static void print_age(const json_t *row)
{
    double us = json_number_value(json_object_get(row, "age_us"));

    if (us < 1e6)
        printf("%8.3f ms ago  ", us / 1e3);
    else
        printf("%8.3f s ago   ", us / 1e6);
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_head(const char *device, const json_t *list)
{
    printf("%s: SRQ %lld of %s (pid %lld), %lld QPs, profile %s\n", device, member_whole(list, "srq"),
           member_text(list, "comm"), member_whole(list, "pid"), member_whole(list, "qps"),
           member_text(list, "profile"));
    printf("  %s: hw_cnt %lld, sw_cnt %lld, %lld unexpected messages arriving\n",
           json_is_true(json_object_get(list, "in_sync")) ? "in sync" : "out of sync, new entries stay pending",
           member_whole(list, "hw_cnt"), member_whole(list, "sw_cnt"), member_whole(list, "inflight"));
    printf("  %lld entries active, %lld pending, %lld matched and arriving, of %lld; %lld untagged buffers\n",
           member_whole(list, "active"), member_whole(list, "pending"), member_whole(list, "consumed"),
           member_whole(list, "max_num_tags"), member_whole(list, "buffers"));
}

static void print_list(const struct tm_options *o, const json_t *list)
{
    const char *name;
    json_t *counters = json_object_get(list, "counters"), *value, *e;
    size_t i;

    printf(" ");
    json_object_foreach (counters, name, value) {
        if (json_integer_value(value))
            printf(" %s %lld", name, json_integer_value(value));
    }
    printf("\n");
    json_array_foreach (json_object_get(list, "entries"), i, e) {
        if (!wanted(o, e))
            continue;
        printf("  %4zu  %-7s  tag %-18s mask %-18s %10lld bytes  handle %-10s wr_id %-6lld ", i,
               member_text(e, "state"), member_text(e, "tag"), member_text(e, "mask"), member_whole(e, "bytes"),
               member_text(e, "handle"), member_whole(e, "recv_wr_id"));
        print_age(e);
        printf("\n");
    }
}

static void print_trace(const struct tm_options *o, const json_t *list)
{
    static const char *const names[] = {"kind", "tag", "mask", "handle", "why"};
    json_t *ev;
    size_t i;

    json_array_foreach (json_object_get(list, "events"), i, ev) {
        if (!wanted(o, ev))
            continue;
        printf("  #%-6lld ", member_whole(ev, "number"));
        print_age(ev);
        printf("%-10s", member_text(ev, "event"));
        if (json_object_get(ev, "qpn"))
            printf("  QP 0x%06llx", member_whole(ev, "qpn"));
        for (unsigned k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            if (json_object_get(ev, names[k]))
                printf("  %s %s", names[k], member_text(ev, names[k]));
        }
        if (json_is_false(json_object_get(ev, "active")))
            printf("  pending");
        if (json_object_get(ev, "entries"))
            printf("  %lld entries", member_whole(ev, "entries"));
        printf("  hw_cnt %lld sw_cnt %lld inflight %lld\n", member_whole(ev, "hw_cnt"), member_whole(ev, "sw_cnt"),
               member_whole(ev, "inflight"));
    }
}

/* The words for the decision in an event; NULL: the event is no decision. */
static const char *decision(const char *event)
{
    static const char *const words[][2] = {{"match", "matched"},
                                           {"unexpected", "unexpected"},
                                           {"rnr", "postponed, no buffer (the sender retries)"},
                                           {"refuse", "refused"},
                                           {"drop", "lost before its end"}};

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(event, words[i][0]) == 0)
            return words[i][1];
    }
    return NULL;
}

static void print_why(const struct tm_options *o, const json_t *list)
{
    json_t *ev;
    size_t i;

    json_array_foreach (json_object_get(list, "events"), i, ev) {
        const char *d = decision(member_text(ev, "event")), *why = member_text(ev, "why_text"),
                   *handle = member_text(ev, "handle");

        if (!d || !wanted(o, ev))
            continue;
        printf("  #%-6lld ", member_whole(ev, "number"));
        print_age(ev);
        printf("QP 0x%06llx  %-7s", member_whole(ev, "qpn"), member_text(ev, "kind"));
        if (json_object_get(ev, "tag"))
            printf(" tag %s", member_text(ev, "tag"));
        printf(": %s", d);
        if (strcmp(d, "matched") == 0)
            printf(" entry %s after %lld comparisons", handle, member_whole(ev, "depth"));
        if (*why)
            printf(": %s", why);
        if (*handle && *why)
            printf(" [entry %s; hw_cnt %lld, sw_cnt %lld]", handle, member_whole(ev, "hw_cnt"),
                   member_whole(ev, "sw_cnt"));
        printf("\n");
    }
}

static void print_replay(struct tm_options *o, const json_t *list)
{
    int n = tm_replay(list, &o->replay);

    if (n < 0 || o->contradictions < 0)
        o->contradictions = -1;
    else
        o->contradictions += n;
}

/* Prints the lists of a daemon. Returns their number. */
static unsigned print_host(struct tm_options *o, const json_t *document)
{
    json_t *device, *list;
    unsigned n = 0;
    size_t i, k;

    json_array_foreach (json_object_get(document, "devices"), i, device) {
        json_array_foreach (json_object_get(device, "lists"), k, list) {
            if (o->srq >= 0 && member_whole(list, "srq") != o->srq)
                continue;
            print_head(member_text(device, "name"), list);
            if (strcmp(o->what, "list") == 0)
                print_list(o, list);
            else if (strcmp(o->what, "trace") == 0)
                print_trace(o, list);
            else if (strcmp(o->what, "replay") == 0)
                print_replay(o, list);
            else
                print_why(o, list);
            n++;
        }
    }
    return n;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static struct pm_tm_req request(const struct tm_options *o)
{
    bool list = strcmp(o->what, "list") == 0, filtered = o->has_tag || o->has_qp;
    bool replay = strcmp(o->what, "replay") == 0;
    uint32_t most = o->number > 0                                   ? (uint32_t)o->number
                    : o->number == 0 || list || o->json || filtered ? UINT32_MAX
                                                                    : EVENTS;

    if (replay)
        return (struct pm_tm_req){.events = UINT32_MAX, .entries = UINT32_MAX};
    return (struct pm_tm_req){.events = list && !o->json ? 0 : most, .entries = list || o->json ? most : 0};
}

/* Prints the lists in a file. Returns the exit code. */
static int from_file(struct tm_options *o)
{
    json_error_t error;
    json_t *root = json_load_file(o->input, 0, &error), *host;
    unsigned lists = 0;
    size_t i;

    if (!root) {
        say("%s: %s (line %d)", o->input, error.text, error.line);
        return 1;
    }
    json_array_foreach (json_object_get(root, "hosts"), i, host) {
        lists += print_host(o, json_object_get(host, "tm"));
    }
    json_decref(root);
    if (lists == 0)
        say("%s: the file has no matching list", o->input);
    return lists == 0 || o->contradictions != 0;
}

int cmd_tm(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "list|trace|why|replay", doc, target_options_child, NULL, NULL};
    struct tm_options o = {.target = TARGET_OPTIONS_NONE, .srq = -1, .number = -1, .replay = {.step = -1}};
    json_t *hosts, *root;
    char path[SOCKET_PATH_MAX];
    struct pm_tm_req req;
    struct targets t;
    unsigned lists = 0;
    int code = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (o.input)
        return from_file(&o);
    hosts = json_array();
    req = request(&o);
    if (target_options_find(&o.target, &t) != 0)
        return 1;
    for (unsigned i = 0; i < t.n; i++) {
        targets_socket(&t, i, path);
        json_t *document = control_fetch(path, PM_OP_TM, &req, sizeof(req));
        if (!document) {
            code = 1;
            continue;
        }
        if (!o.json && t.first >= 0)
            printf("=== host %u\n", (unsigned)t.first + i);
        if (!o.json)
            lists += print_host(&o, document);
        json_t *host = json_pack("{s:s, s:o}", "socket", path, "tm", document);
        if (t.first >= 0)
            json_object_set_new(host, "host", json_integer(t.first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    root = json_pack("{s:o}", "hosts", hosts);
    if (o.json) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (lists == 0 && code == 0) {
        puts("no program has a matching list (a list exists as long as its SRQ; only root and the daemon's user see "
             "all users' lists)");
    }
    json_decref(root);
    return code ? code : o.contradictions != 0;
}
