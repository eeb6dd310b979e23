// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/why_cm.h"

#include <stdio.h>
#include <string.h>

#include "src/cmd/common/json_member.h"
#include "src/cmd/inspect/diagnose_cm.h"

static json_t *answer(const json_t *host, const char *kind, const json_t *row, const json_t *all_hosts)
{
    char text[CM_REASON_MAX];
    json_t *o = json_pack("{s:s}", "kind", kind);
    const char *code;

    if (json_object_get(host, "host"))
        json_object_set(o, "host", json_object_get(host, "host"));
    json_object_update(o, (json_t *)(uintptr_t)row);
    if (strcmp(kind, "listener") == 0)
        code = diagnose_listener(row, text);
    else if (strcmp(kind, "failure") == 0)
        code = diagnose_failure(row, all_hosts, text);
    else
        code = diagnose_connection(row, all_hosts, text);
    json_object_set_new(o, "code", json_string(code));
    json_object_set_new(o, "text", json_string(text));
    return o;
}

json_t *why_cm_answers(const json_t *hosts, const json_t *all_hosts)
{
    static const char *const lists[][2] = {
        {"listeners", "listener"}, {"connections", "connection"}, {"failures", "failure"}};
    json_t *answers = json_array(), *host, *row;
    size_t i, k;

    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host) {
        const json_t *cm = json_object_get(json_object_get(host, "status"), "cm");

        for (unsigned n = 0; n < sizeof(lists) / sizeof(lists[0]); n++) {
            json_array_foreach (json_object_get(cm, lists[n][0]), k, row)
                json_array_append_new(answers, answer(host, lists[n][1], row, all_hosts));
        }
    }
    return answers;
}

/* "ping, pid 17" or "pid 17" */
static void print_program(const json_t *o)
{
    if (*member_text(o, "comm"))
        printf("%s, ", member_text(o, "comm"));
    printf("pid %lld", member_whole(o, "pid"));
}

static void print_host(const json_t *o)
{
    if (json_object_get(o, "host"))
        printf(" on host %lld", member_whole(o, "host"));
}

static void print_peer(const json_t *o)
{
    if (*member_text(o, "remote"))
        printf(" to %s", member_text(o, "remote"));
}

static void print_one(const json_t *o)
{
    const char *kind = member_text(o, "kind");

    if (strcmp(kind, "listener") == 0) {
        printf("Listener at port %lld of %s", member_whole(o, "port"), member_text(o, "address"));
        print_host(o);
        fputs(" (", stdout);
        print_program(o);
        printf(", ID %lld).\n", member_whole(o, "id"));
    } else if (strcmp(kind, "failure") == 0) {
        fputs("Connection", stdout);
        print_peer(o);
        print_host(o);
        fputs(" (", stdout);
        print_program(o);
        printf(") failed %.3g s ago: %s.\n", member_real(o, "ago_s"), member_text(o, "event"));
    } else {
        fputs("Connection", stdout);
        print_peer(o);
        print_host(o);
        fputs(" (", stdout);
        print_program(o);
        printf(", ID %lld) is in %s.\n", member_whole(o, "id"), member_text(o, "state"));
    }
    printf("  - %s\n", member_text(o, "text"));
}

void why_cm_print(const json_t *answers)
{
    json_t *o;
    size_t i;

    json_array_foreach ((json_t *)(uintptr_t)answers, i, o)
        print_one(o);
}
