// SPDX-License-Identifier: BSD-2-Clause
/* Reads members of the daemon's documents. A member that is missing, or has another type, reads as 0 or "". */
#ifndef PUMICE_SRC_CMD_COMMON_JSON_MEMBER_H
#define PUMICE_SRC_CMD_COMMON_JSON_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline long long member_whole(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static inline double member_real(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

static inline bool member_true(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

/* The text is valid as long as o is. */
static inline const char *member_text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

/* A number of 64 bits, or a key. The documents hold such a member as text. */
static inline uint64_t member_u64(const json_t *o, const char *name)
{
    return strtoull(member_text(o, name), NULL, 0);
}

static inline bool member_is(const json_t *o, const char *name, const char *value)
{
    return strcmp(member_text(o, name), value) == 0;
}

#endif
