// SPDX-License-Identifier: BSD-2-Clause
#include "tests/soak/hostile/effort.h"

#include "tests/verbs/check.h"

static uint64_t state;
static double end;

void effort_start(uint64_t seed, double seconds)
{
    state = seed;
    end = vt_now() + seconds;
}

bool effort_goes_on(void)
{
    return vt_now() < end;
}

double effort_left(void)
{
    return end - vt_now();
}

uint64_t rnd(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

void rnd_fill(void *p, size_t len)
{
    for (uint8_t *b = p; len--; b++)
        *b = (uint8_t)rnd(256);
}
