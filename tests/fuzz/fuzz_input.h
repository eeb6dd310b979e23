// SPDX-License-Identifier: BSD-2-Clause
/* The input of a fuzz target, read as a sequence of numbers. */
#ifndef PUMICE_TESTS_FUZZ_FUZZ_INPUT_H
#define PUMICE_TESTS_FUZZ_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *p;
    size_t len; /* bytes that are left */
};

/* Takes a number of so many bytes, big-endian. An input that is too short has fewer bytes, and then zeros. */
static inline uint32_t take(struct input *in, unsigned bytes)
{
    uint32_t v = 0;

    while (bytes-- && in->len) {
        v = v << 8 | *in->p++;
        in->len--;
    }
    return v;
}

#endif
