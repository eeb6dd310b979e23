// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/rule.h"

#include <string.h>

static const char *const names[RULES] = {
    [RULE_SEND_BUFFER] = "send-buffer",
    [RULE_OVERLAP] = "overlap",
    [RULE_TOUCH] = "touch",
    [RULE_DEREG] = "dereg",
    [RULE_FREED] = "freed",
    [RULE_DEAD_KEY] = "dead-key",
    [RULE_ACCESS] = "access",
    [RULE_READ_FENCE] = "read-fence",
    [RULE_GRH] = "grh",
    [RULE_GID_INDEX] = "gid-index",
    [RULE_MISMATCH] = "mismatch",
    [RULE_MTU] = "mtu",
    [RULE_TIMEOUT] = "timeout",
    [RULE_LATE_RECEIVE] = "late-receive",
    [RULE_LOST_EVENT] = "lost-event",
    [RULE_UNACKED] = "unacked",
    [RULE_THREAD] = "thread",
    [RULE_UNSIGNALED] = "unsignaled",
    [RULE_CQ_SIZE] = "cq-size",
    [RULE_AFTER_ERROR] = "after-error",
    [RULE_BUSY] = "busy",
    [RULE_LEFT] = "left",
    [RULE_FORK] = "fork",
};

static const char *const what[RULES] = {
    [RULE_SEND_BUFFER] = "a send buffer changed before its completion",
    [RULE_OVERLAP] = "two targets of outstanding requests overlap",
    [RULE_TOUCH] = "a target was touched before its completion",
    [RULE_DEREG] = "a region was deregistered while requests needed it",
    [RULE_FREED] = "memory was freed while requests needed it",
    [RULE_DEAD_KEY] = "the key of a deregistered region was used",
    [RULE_ACCESS] = "a region does not allow what a request does",
    [RULE_READ_FENCE] = "memory was sent that a READ still fills",
    [RULE_GRH] = "an address without a GRH, or no room for one",
    [RULE_GID_INDEX] = "a GID index that nobody has chosen",
    [RULE_MISMATCH] = "two ends of a connection that do not fit",
    [RULE_MTU] = "a path MTU that the port may not have",
    [RULE_TIMEOUT] = "a queue pair that gives up too early, or never",
    [RULE_LATE_RECEIVE] = "a receive request came after its message",
    [RULE_LOST_EVENT] = "a wait for an event that may never come",
    [RULE_UNACKED] = "events that were not acknowledged",
    [RULE_THREAD] = "a thread domain of two threads",
    [RULE_UNSIGNALED] = "a send queue filled by unsignaled requests",
    [RULE_CQ_SIZE] = "a CQ that can overflow",
    [RULE_AFTER_ERROR] = "requests after an error",
    [RULE_BUSY] = "a destroy call that failed with EBUSY",
    [RULE_LEFT] = "objects left at the end of the process",
    [RULE_FORK] = "objects of the parent process",
};

static bool on[RULES];

const char *rule_name(enum rule rule)
{
    return names[rule];
}

const char *rule_what(enum rule rule)
{
    return what[rule];
}

static bool choose_one(const char *name, size_t len)
{
    bool known = false;

    for (unsigned i = 0; i < RULES; i++) {
        bool all = len == 3 && memcmp(name, "all", 3) == 0 && i != RULE_TOUCH;

        if (all || (strlen(names[i]) == len && memcmp(names[i], name, len) == 0))
            on[i] = known = true;
    }
    return known;
}

bool rule_choose(const char *list, const char **bad)
{
    while (*list) {
        size_t len = strcspn(list, ",");

        if (!choose_one(list, len)) {
            *bad = list;
            return false;
        }
        list += len + (list[len] == ',');
    }
    return true;
}

bool rule_is_on(enum rule rule)
{
    return on[rule];
}
