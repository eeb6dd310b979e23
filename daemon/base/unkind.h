// SPDX-License-Identifier: BSD-2-Clause
/* The decisions of an unkind NIC (pumice/unkind.h, docs/unkind.md), for one device. A pure module: no I/O, no clock, no
 * random numbers. The modules that are unkind ask it, and count what they did. Each device has its own struct unkind, used
 * by one thread. */
#ifndef PUMICE_DAEMON_BASE_UNKIND_H
#define PUMICE_DAEMON_BASE_UNKIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/unkind.h"

/* Names as in status and the metrics. X(name, what it counts) */
#define UNKIND_COUNTERS(X)                                                                                             \
    X(unkind_placements, "messages, or parts of them, that came to memory in another order than their bytes")          \
    X(unkind_late_writes, "writes to memory that became visible later than their ACK allows to think")                 \
    X(unkind_completions, "completions that came late")                                                                \
    X(unkind_events, "events of CQs without an entry")                                                                 \
    X(unkind_rnr, "messages refused with an RNR NAK, although a receive request had just been posted")                 \
    X(unkind_acks, "ACKs that left late")

struct unkind_counters {
#define X(name, text) uint64_t name; /* text */
    UNKIND_COUNTERS(X)
#undef X
};

#define UNKIND_OBJECTS 1024u /* entries of `drawn` for each kind; objects that collide share one */
#define UNKIND_TEXT_MAX 128u /* enough for the names of all kinds */

struct unkind {
    uint32_t kinds; /* enum unkind_kind; 0: the device is kind */
    uint64_t seed;
    struct unkind_counters counters;
    uint32_t drawn[UNKIND_NUMBERS][UNKIND_OBJECTS]; /* decisions so far */
};

void unkind_init(struct unkind *u, uint32_t kinds, uint64_t seed);

static inline bool unkind_is(const struct unkind *u, enum unkind_kind kind)
{
    return __builtin_expect(u->kinds & kind, 0);
}

/* The next decision of this kind about an object: 64 random bits. */
uint64_t unkind_next(struct unkind *u, enum unkind_kind kind, uint64_t object);

/* Parses the text of the option: "off", "all", or names of kinds with commas between. Returns 0 or -EINVAL. */
int unkind_parse(const char *text, uint32_t *kinds);
/* Writes the names of the kinds with commas between, or "off". */
void unkind_text(uint32_t kinds, char text[UNKIND_TEXT_MAX]);
/* As the list of an error message: "off, all, or kinds with commas between: placement, ...". */
void unkind_expected(char *text, size_t size);

#endif
