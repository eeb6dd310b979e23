// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/connect/asked.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXTS_MAX 64u
#define ARGUMENTS_MAX 65536u /* bytes of the command line */

static struct asked {
    const struct ibv_context *context; /* NULL: free */
    bool port;
    uint64_t gids; /* a bit for each index that it asked for; the last one stands for all above */
} asked[CONTEXTS_MAX];
static bool types;

/* NULL: too many contexts. */
static struct asked *of(const struct ibv_context *context)
{
    struct asked *unused = NULL;

    for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
        if (asked[i].context == context)
            return &asked[i];
        if (!asked[i].context && !unused)
            unused = &asked[i];
    }
    if (unused)
        *unused = (struct asked){.context = context};
    return unused;
}

void asked_port(const struct ibv_context *context)
{
    struct asked *a = of(context);

    if (a)
        a->port = true;
}

void asked_gid_types(void)
{
    types = true;
}

void asked_gid(const struct ibv_context *context, int index)
{
    struct asked *a = of(context);

    if (a && index >= 0)
        a->gids |= 1ull << (index < 63 ? index : 63);
}

void asked_forget(const struct ibv_context *context)
{
    struct asked *a = of(context);

    if (a)
        a->context = NULL;
}

bool asked_has_port(const struct ibv_context *context)
{
    const struct asked *a = of(context);

    return !a || a->port;
}

/* --- the user's choice ------------------------------------------------------------------------- */

/* Does the text end with the number? As in "-g0", "--gid-index=0", "0". */
static bool ends_with_number(const char *text, int number)
{
    char digits[16];
    int n = snprintf(digits, sizeof(digits), "%d", number);
    size_t length = strlen(text);

    if (length < (size_t)n || strcmp(text + length - n, digits) != 0)
        return false;
    return length == (size_t)n || !isdigit((unsigned char)text[length - (size_t)n - 1]);
}

static bool in_arguments(int number)
{
    char *text = malloc(ARGUMENTS_MAX);
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = text && f ? fread(text, 1, ARGUMENTS_MAX - 1, f) : 0;
    bool found = false;

    if (text)
        text[n] = 0;
    for (size_t at = n ? strlen(text) + 1 : 0; at < n && !found; at += strlen(text + at) + 1)
        found = ends_with_number(text + at, number);
    if (f)
        fclose(f);
    free(text);
    return found;
}

static bool in_environment(int number)
{
    for (char **e = environ; e && *e; e++) {
        const char *value = strchr(*e, '=');
        char name[64];

        /* Such as NCCL_IB_GID_INDEX=3 and UCX_IB_GID_INDEX=3. */
        snprintf(name, sizeof(name), "%.*s", value ? (int)(value - *e) : 0, *e);
        if (value && strstr(name, "GID") && ends_with_number(value, number))
            return true;
    }
    return false;
}

bool asked_has_chosen(const struct ibv_context *context, int index)
{
    const struct asked *a = of(context);

    if (types || !a || (a->gids & (a->gids - 1)))
        return true;
    return in_arguments(index) || in_environment(index);
}
