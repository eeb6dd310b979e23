// SPDX-License-Identifier: BSD-2-Clause
/* Makes JSON values (jansson) from numbers: integers, hexadecimal texts, and durations in microseconds. Each function
 * returns a new reference. */
#ifndef PUMICE_DAEMON_BASE_JSON_H
#define PUMICE_DAEMON_BASE_JSON_H

#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

static inline json_t *json_number(uint64_t v)
{
    return json_integer((json_int_t)v);
}

/* A text such as "0x1f", for numbers that may exceed 63 bits. */
static inline json_t *json_hex(uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, v);
    return json_string(text);
}

/* Microseconds from one time to a later one, both in ns; 0 if it is not later. */
static inline json_t *json_us_between(uint64_t from, uint64_t to)
{
    return json_real(to > from ? (double)(to - from) / 1e3 : 0.0);
}

#endif
