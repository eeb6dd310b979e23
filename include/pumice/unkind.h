// SPDX-License-Identifier: BSD-2-Clause
/* The unkind NIC (`--unkind`): what the specifications allow a NIC to do, and what Pumice otherwise never does. This
 * header has the kinds, which the daemon and the client library share. docs/unkind.md explains each kind.
 *
 * A decision is a hash of the seed, the kind, an object (a QP number, the handle of a CQ) and the number of earlier
 * decisions of this kind about this object. So the same seed gives the same decisions. */
#ifndef PUMICE_UNKIND_H
#define PUMICE_UNKIND_H

#include <stdint.h>

/* Names as in `--unkind` and in status. X(constant, name) */
#define UNKIND_KINDS(X)                                                                                                \
    X(PLACEMENT, "placement")                                                                                          \
    X(VISIBILITY, "visibility")                                                                                        \
    X(COMPLETIONS, "completions")                                                                                      \
    X(EVENTS, "events")                                                                                                \
    X(POLLS, "polls")                                                                                                  \
    X(BUFFERS, "buffers")                                                                                              \
    X(RNR, "rnr")                                                                                                      \
    X(ACKS, "acks")

enum unkind_number {
#define X(constant, name) UNKIND_NUMBER_##constant,
    UNKIND_KINDS(X)
#undef X
        UNKIND_NUMBERS
};
enum unkind_kind {
#define X(constant, name) UNKIND_##constant = 1u << UNKIND_NUMBER_##constant,
    UNKIND_KINDS(X)
#undef X
        UNKIND_ALL = (1u << UNKIND_NUMBERS) - 1,
};

/* The finalizer of SplitMix64: each bit of x changes each bit of the result with probability one half. */
static inline uint64_t unkind_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Decision n of a kind about an object. */
static inline uint64_t unkind_draw(uint64_t seed, enum unkind_kind kind, uint64_t object, uint64_t n)
{
    return unkind_mix(unkind_mix(unkind_mix(seed ^ ((uint64_t)kind << 48)) ^ object) ^ n);
}

#endif
