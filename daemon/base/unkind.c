// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/unkind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const names[UNKIND_NUMBERS] = {
#define X(constant, name) [UNKIND_NUMBER_##constant] = name,
    UNKIND_KINDS(X)
#undef X
};

void unkind_init(struct unkind *u, uint32_t kinds, uint64_t seed)
{
    memset(u, 0, sizeof(*u));
    u->kinds = kinds;
    u->seed = seed;
}

uint64_t unkind_next(struct unkind *u, enum unkind_kind kind, uint64_t object)
{
    uint32_t *n = &u->drawn[__builtin_ctz((unsigned)kind)][unkind_mix(object) % UNKIND_OBJECTS];

    return unkind_draw(u->seed, kind, object, (*n)++);
}

/* The kind whose name is name[0 ... len); 0: there is none. */
static uint32_t kind_of(const char *name, size_t len)
{
    for (unsigned i = 0; i < UNKIND_NUMBERS; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return 1u << i;
    }
    return len == 3 && memcmp(name, "all", 3) == 0 ? UNKIND_ALL : 0;
}

int unkind_parse(const char *text, uint32_t *kinds)
{
    *kinds = 0;
    if (strcmp(text, "off") == 0)
        return 0;
    for (;; text++) {
        size_t len = strcspn(text, ",");
        uint32_t kind = kind_of(text, len);

        if (!kind) {
            *kinds = 0;
            return -EINVAL;
        }
        *kinds |= kind;
        text += len;
        if (!*text)
            return 0;
    }
}

static void add(char *text, size_t size, const char *word, const char *separator)
{
    size_t len = strlen(text);

    snprintf(text + len, size - len, "%s%s", len ? separator : "", word);
}

void unkind_text(uint32_t kinds, char text[UNKIND_TEXT_MAX])
{
    text[0] = 0;
    for (unsigned i = 0; i < UNKIND_NUMBERS; i++) {
        if (kinds & (1u << i))
            add(text, UNKIND_TEXT_MAX, names[i], ",");
    }
    if (!kinds)
        strcpy(text, "off");
}

void unkind_expected(char *text, size_t size)
{
    snprintf(text, size, "off, all, or kinds with commas between:");
    for (unsigned i = 0; i < UNKIND_NUMBERS; i++)
        add(text, size, names[i], i ? ", " : " ");
}
