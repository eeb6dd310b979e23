// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/tm_replay.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/json_member.h"

#define ENTRIES_PER_LINE 6u /* of the diagram */
#define COLUMN 40 /* width, characters */

struct entry {
    uint64_t handle, tag, mask;
    bool active;
    bool old; /* added before the trace begins: its tag, mask, state and place are not known */
};
struct replay {
    struct entry *list;
    size_t n;
    uint16_t hw_cnt, sw_cnt;
    long long inflight;
    size_t activated; /* entries that became active, and whose "activate" event has not come yet */
    bool judges; /* the trace begins with the first event, so contradictions are reported */
    long long number; /* of the current event */
    unsigned decisions, contradictions;
};

__attribute__((format(printf, 2, 3))) static void contradict(struct replay *r, const char *format, ...)
{
    va_list args;

    if (!r->judges)
        return;
    r->contradictions++;
    printf("  ! #%lld: ", r->number);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* --- the rules ---------------------------------------------------------------------------------------------------- */

static bool in_sync(const struct replay *r)
{
    return r->hw_cnt == r->sw_cnt && r->inflight == 0;
}

/* When the list is in sync, all pending entries become active. */
static void activate_if_in_sync(struct replay *r)
{
    for (size_t i = 0; i < r->n && in_sync(r); i++) {
        r->activated += !r->list[i].active;
        r->list[i].active = true;
    }
}

static bool matches(const struct entry *e, uint64_t tag)
{
    return !e->old && (tag & e->mask) == e->tag;
}

static struct entry *find(struct replay *r, uint64_t handle)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->list[i].handle == handle)
            return &r->list[i];
    }
    return NULL;
}

/* The entry that a message with this tag must match; NULL: none. */
static struct entry *first_match(struct replay *r, uint64_t tag)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->list[i].active && matches(&r->list[i], tag))
            return &r->list[i];
    }
    return NULL;
}

static void remove_entry(struct replay *r, struct entry *e)
{
    memmove(e, e + 1, (size_t)(r->list + r->n - e - 1) * sizeof(*e));
    r->n--;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void on_add(struct replay *r, const json_t *ev)
{
    struct entry e = {.handle = member_u64(ev, "handle"),
                      .tag = member_u64(ev, "tag"),
                      .mask = member_u64(ev, "mask"),
                      .active = in_sync(r)};

    if (find(r, e.handle))
        contradict(r, "entry %s is in the list already", member_text(ev, "handle"));
    if (e.active != (bool)json_is_true(json_object_get(ev, "active")))
        contradict(r, "entry %s should be %s", member_text(ev, "handle"), e.active ? "active at once" : "pending");
    r->list[r->n++] = e;
}

static void on_del(struct replay *r, const json_t *ev)
{
    struct entry *e = find(r, member_u64(ev, "handle"));

    if (*member_text(ev, "why") && e)
        contradict(r, "entry %s is in the list, so it can be deleted", member_text(ev, "handle"));
    else if (!*member_text(ev, "why") && !e)
        contradict(r, "entry %s is not in the list", member_text(ev, "handle"));
    else if (e)
        remove_entry(r, e);
}

static void on_match(struct replay *r, const json_t *ev)
{
    struct entry *must = first_match(r, member_u64(ev, "tag")), *e = find(r, member_u64(ev, "handle"));

    r->decisions++;
    if (!must)
        contradict(r, "no active entry matches tag %s", member_text(ev, "tag"));
    else if (must != e)
        contradict(r, "tag %s must match entry 0x%" PRIx64 ", which is the first", member_text(ev, "tag"),
                   must->handle);
    if (e)
        remove_entry(r, e);
}

/* A message without a match: it is unexpected, or an RNR NAK refused it because there is no buffer. */
static void on_no_match(struct replay *r, const json_t *ev)
{
    struct entry *e = first_match(r, member_u64(ev, "tag"));

    r->decisions++;
    if (!json_object_get(ev, "tag")) /* a message without a tag is not matched */
        return;
    if (e && !member_is(ev, "why", "few-buffers"))
        contradict(r, "tag %s must match entry 0x%" PRIx64, member_text(ev, "tag"), e->handle);
    if (member_is(ev, "why", "no-entry") && r->n)
        contradict(r, "the list is not empty");
    e = find(r, member_u64(ev, "handle"));
    if (!strncmp(member_text(ev, "why"), "pending", 7) && !(e && !e->active && matches(e, member_u64(ev, "tag"))))
        contradict(r, "entry %s does not wait for tag %s", member_text(ev, "handle"), member_text(ev, "tag"));
}

/* True if an unexpected message of this kind counts for hw_cnt. */
static bool counts(const json_t *ev)
{
    return member_is(ev, "kind", "eager") || member_is(ev, "kind", "rndv");
}

static void on_end(struct replay *r, const json_t *ev)
{
    bool delivered = member_is(ev, "event", "deliver");

    if (!counts(ev) || json_object_get(ev, "handle")) /* with a handle: a message that matched an entry */
        return;
    r->inflight--;
    r->hw_cnt = (uint16_t)(r->hw_cnt + delivered);
}

static void on_activate(struct replay *r, const json_t *ev)
{
    if ((long long)r->activated != member_whole(ev, "entries"))
        contradict(r, "%zu entries become active, not %lld", r->activated, member_whole(ev, "entries"));
    r->activated = 0;
}

static void apply(struct replay *r, const json_t *ev)
{
    const char *what = member_text(ev, "event");

    r->number = member_whole(ev, "number");
    if (r->sw_cnt !=
        (uint16_t)member_whole(ev, "sw_cnt")) { /* the program reports its count before its other operations */
        r->sw_cnt = (uint16_t)member_whole(ev, "sw_cnt");
        activate_if_in_sync(r);
    }
    if (r->activated && strcmp(what, "activate") != 0)
        contradict(r, "%zu entries should have become active", r->activated);
    if (strcmp(what, "add") == 0)
        on_add(r, ev);
    else if (strcmp(what, "del") == 0)
        on_del(r, ev);
    else if (strcmp(what, "activate") == 0)
        on_activate(r, ev);
    else if (strcmp(what, "match") == 0)
        on_match(r, ev);
    else if (strcmp(what, "unexpected") == 0 || strcmp(what, "rnr") == 0)
        on_no_match(r, ev);
    else if (strcmp(what, "deliver") == 0 || strcmp(what, "drop") == 0)
        on_end(r, ev);
    else if (strcmp(what, "uncount") == 0)
        r->hw_cnt--;
    if (strcmp(what, "unexpected") == 0 && counts(ev))
        r->inflight++;
    if (r->hw_cnt != (uint16_t)member_whole(ev, "hw_cnt") || r->inflight != member_whole(ev, "inflight"))
        contradict(r, "hw_cnt %u and inflight %lld are right", r->hw_cnt, r->inflight);
    r->hw_cnt = (uint16_t)member_whole(ev, "hw_cnt");
    r->inflight = member_whole(ev, "inflight");
    activate_if_in_sync(r);
}

/* --- the beginning and the end ------------------------------------------------------------------------------------ */

static void add_older_entry(struct replay *r, uint64_t handle)
{
    if (!find(r, handle))
        r->list[r->n++] = (struct entry){.handle = handle, .active = true, .old = true};
}

/* Adds the entries that were added before the trace begins. They leave the list in the trace, or are still in it. */
static void add_older_entries(struct replay *r, const json_t *list)
{
    const json_t *events = json_object_get(list, "events"), *first = json_array_get(events, 0);
    json_t *ev, *e;
    size_t i, k;

    json_array_foreach (events, i, ev) {
        bool leaves = member_is(ev, "event", "match") || (member_is(ev, "event", "del") && !*member_text(ev, "why")),
             added = false;

        for (k = 0; leaves && k < i; k++)
            added |= member_is(json_array_get(events, k), "event", "add") &&
                     member_u64(json_array_get(events, k), "handle") == member_u64(ev, "handle");
        if (leaves && !added)
            add_older_entry(r, member_u64(ev, "handle"));
    }
    json_array_foreach (json_object_get(list, "entries"), i, e) {
        bool added = false;

        json_array_foreach (events, k, ev) {
            added |= member_is(ev, "event", "add") && member_u64(ev, "handle") == member_u64(e, "handle");
        }
        if (!added)
            add_older_entry(r, member_u64(e, "handle"));
    }
    r->hw_cnt = (uint16_t)member_whole(first, "hw_cnt");
    r->sw_cnt = (uint16_t)member_whole(first, "sw_cnt");
    r->inflight = member_whole(first, "inflight");
}

/* The daemon's present list must equal the list at the end of the trace. */
static void compare_with_daemon(struct replay *r, const json_t *list)
{
    json_t *entries = json_object_get(list, "entries"), *e;
    size_t i;

    if (json_array_size(entries) != r->n)
        contradict(r, "%zu entries are left, the daemon has %zu", r->n, json_array_size(entries));
    json_array_foreach (entries, i, e) {
        if (i < r->n &&
            (r->list[i].handle != member_u64(e, "handle") || r->list[i].active != member_is(e, "state", "active")))
            contradict(r, "entry %zu is another one, or in another state", i);
    }
    if (r->hw_cnt != member_whole(list, "hw_cnt") || r->sw_cnt != member_whole(list, "sw_cnt"))
        contradict(r, "the daemon counts %lld and %lld", member_whole(list, "hw_cnt"), member_whole(list, "sw_cnt"));
}

/* --- output ------------------------------------------------------------------------------------------------------- */

/* Prints the handles of the entries: "0x12* 0x13 …". A star marks active entries. */
static void print_entries(const struct replay *r)
{
    for (size_t i = 0; i < r->n && i < ENTRIES_PER_LINE; i++)
        printf(" 0x%" PRIx64 "%s", r->list[i].handle, r->list[i].old ? "?" : r->list[i].active ? "*" : "");
    if (r->n > ENTRIES_PER_LINE)
        printf(" and %zu more", r->n - ENTRIES_PER_LINE);
}

/* Prints one line of the diagram: operations of the program at the left, messages at the right, then the list after the
 * event. */
static void print_line(const struct replay *r, const json_t *ev, double start_us)
{
    char what[128];
    int len = snprintf(what, sizeof(what), "%s", member_text(ev, "event"));
    bool message = json_object_get(ev, "kind") != NULL;

    if (message && len > 0)
        len += snprintf(what + len, sizeof(what) - (size_t)len, " %s QP 0x%llx", member_text(ev, "kind"),
                        member_whole(ev, "qpn"));
    if (json_object_get(ev, "tag"))
        len += snprintf(what + len, sizeof(what) - (size_t)len, " tag %s", member_text(ev, "tag"));
    if (json_object_get(ev, "handle"))
        len += snprintf(what + len, sizeof(what) - (size_t)len, " [%s]", member_text(ev, "handle"));
    if (json_object_get(ev, "entries"))
        snprintf(what + len, sizeof(what) - (size_t)len, " %lld entries", member_whole(ev, "entries"));
    printf("  #%-5lld %11.3f ms  %-*s| %-*s| hw %u sw %u%s |", r->number,
           (start_us - json_number_value(json_object_get(ev, "age_us"))) / 1e3, COLUMN, message ? "" : what, COLUMN + 8,
           message ? what : "", r->hw_cnt, r->sw_cnt, r->inflight ? "+" : "");
    print_entries(r);
    printf("\n");
    if (*member_text(ev, "why_text"))
        printf("  %*s%s\n", message ? COLUMN + 26 : 24, "", member_text(ev, "why_text"));
}

static void print_state(const struct replay *r, const json_t *ev)
{
    printf("  after #%lld, %s: %s, hw_cnt %u, sw_cnt %u, %lld unexpected messages arriving\n", r->number,
           member_text(ev, "event"), in_sync(r) ? "in sync" : "out of sync, new entries stay pending", r->hw_cnt,
           r->sw_cnt, r->inflight);
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = &r->list[i];

        if (e->old)
            printf("  %4zu  older than the trace, its place among others of that kind is not known  handle 0x%" PRIx64
                   "\n",
                   i, e->handle);
        else
            printf("  %4zu  %-7s  tag 0x%-16" PRIx64 " mask 0x%-16" PRIx64 " handle 0x%" PRIx64 "\n", i,
                   e->active ? "active" : "pending", e->tag, e->mask, e->handle);
    }
}

static void print_summary(const struct replay *r, size_t events)
{
    if (!r->judges)
        printf("  %zu events; older ones are forgotten, so nothing is judged\n", events);
    else
        printf("  %zu events, %u decisions: %u contradictions to the rules\n", events, r->decisions, r->contradictions);
}

int tm_replay(const json_t *list, const struct tm_replay_options *o)
{
    const json_t *events = json_object_get(list, "events"), *first = json_array_get(events, 0);
    size_t n = json_array_size(events), left = json_array_size(json_object_get(list, "entries")), i;
    struct replay r = {.judges = !first || member_whole(first, "number") == 0};
    double start_us = json_number_value(json_object_get(first, "age_us"));
    bool found = o->step < 0;
    json_t *ev;

    if (!(r.list = calloc(n + left + 1, sizeof(*r.list))))
        return -1;
    if (!r.judges)
        add_older_entries(&r, list);
    json_array_foreach (events, i, ev) {
        apply(&r, ev);
        if (o->step < 0 && !o->check)
            print_line(&r, ev, start_us);
        if (o->step >= 0 && member_whole(ev, "number") == o->step) {
            found = true;
            print_state(&r, ev);
            break;
        }
    }
    if (!found)
        say("there is no event #%ld in the trace, which begins with #%lld and has %zu events", o->step,
            member_whole(first, "number"), n);
    if (o->step < 0) {
        compare_with_daemon(&r, list);
        print_summary(&r, n);
    }
    free(r.list);
    return found ? (int)r.contradictions : -1;
}
