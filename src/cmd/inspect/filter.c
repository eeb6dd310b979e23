// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/inspect/filter.h"

#include <string.h>

static const char *const known_lists[] = {"gids",   "sessions",   "pds", "qps",       "srqs",        "xrcds",
                                          "cqs",    "comp_cntrs", "mrs", "mws",       "groups",      "connectivity",
                                          "quotas", "control",    "cm",  "listeners", "connections", "failures"};
#define LISTS (sizeof(known_lists) / sizeof(known_lists[0]))

/* True if text, a list of names with commas between them, contains this name of len characters. */
static bool among(const char *text, const char *name, size_t len)
{
    for (;;) {
        size_t n = strcspn(text, ",");

        if (n == len && memcmp(text, name, len) == 0)
            return true;
        if (!text[n])
            return false;
        text += n + 1;
    }
}

bool filter_knows(const char *lists)
{
    for (;;) {
        size_t n = strcspn(lists, ",");
        bool known = false;

        for (unsigned i = 0; i < LISTS && !known; i++)
            known = strlen(known_lists[i]) == n && memcmp(known_lists[i], lists, n) == 0;
        if (!known)
            return false;
        if (!lists[n])
            return true;
        lists += n + 1;
    }
}

/* Connection management, which belongs to the daemon: all of it, or some of its lists. */
static void filter_cm(json_t *status, const char *lists)
{
    json_t *cm = json_object_get(status, "cm"), *member;
    const char *name;
    void *next;

    if (among(lists, "cm", strlen("cm")))
        return;
    json_object_foreach_safe (cm, next, name, member) {
        if (!among(lists, name, strlen(name)))
            json_object_del(cm, name);
    }
    if (json_object_size(cm) == 0)
        json_object_del(status, "cm");
}

void filter_lists(json_t *status, const char *lists)
{
    json_t *device, *member;
    const char *name;
    void *next;
    size_t i;

    if (!among(lists, "quotas", strlen("quotas")))
        json_object_del(status, "quotas");
    if (!among(lists, "control", strlen("control")))
        json_object_del(status, "control");
    filter_cm(status, lists);
    json_array_foreach (json_object_get(status, "devices"), i, device) {
        json_object_foreach_safe (device, next, name, member) {
            if (!among("name,address,port", name, strlen(name)) && !among(lists, name, strlen(name)))
                json_object_del(device, name);
        }
    }
}

static bool is_of(const json_t *sessions, const json_t *row, json_int_t pid)
{
    const json_t *number = json_object_get(row, "session"), *own = json_object_get(row, "pid"), *s;
    size_t i;

    if (own)
        return json_integer_value(own) == pid;
    json_array_foreach (sessions, i, s) {
        if (json_integer_value(json_object_get(s, "pid")) == pid && json_equal(json_object_get(s, "session"), number))
            return true;
    }
    return false;
}

static void keep_rows(json_t *list, const json_t *sessions, json_int_t pid)
{
    for (size_t row = json_array_size(list); row-- > 0;) {
        if (!is_of(sessions, json_array_get(list, row), pid))
            json_array_remove(list, row);
    }
}

void filter_process(json_t *status, json_int_t pid)
{
    json_t *device, *list;
    const char *name;
    size_t i;

    json_object_foreach (json_object_get(status, "cm"), name, list)
        keep_rows(list, NULL, pid);

    json_array_foreach (json_object_get(status, "devices"), i, device) {
        json_t *sessions = json_deep_copy(json_object_get(device, "sessions"));

        for (unsigned k = 0; k < LISTS; k++) {
            if (strcmp(known_lists[k], "gids") != 0) /* they belong to the device */
                keep_rows(json_object_get(device, known_lists[k]), sessions, pid);
        }
        json_decref(sessions);
    }
}
