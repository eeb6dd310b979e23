// SPDX-License-Identifier: BSD-2-Clause
/* Words of targets that the program may not touch while the device may fill them (RULE_TOUCH). A debug register of the
 * processor watches a word of 1 to 8 bytes, and an access of the program is a signal, after the access. So other data of the
 * same page stays as it is, and system calls may use it. The device may write.
 *
 * There are few registers, so not each word is watched at a time. The kernel must allow perf_event_open(2), and know the
 * signal (Linux 5.13). Under the lock of records.h, if not said otherwise. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_WATCH_H
#define PUMICE_SRC_CHECK_OBJECTS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCHES_MAX 4u /* registers of x86 */

struct watch {
    uint64_t word; /* its address */
    uint8_t bytes;
    uint8_t slot; /* from 1; 0: nothing is watched */
};

/* A more important watch takes the register of a less important one. */
enum watch_rank { WATCH_INNER, WATCH_RECEIVE, WATCH_SOON };

/* Watches the first or the last word of [from, to), or one of those between them: another one each time. Without effect if
 * there is none, if it is watched already, or if no register is free. The watch must stay at its address. */
void watch_first(struct watch *w, uint64_t from, uint64_t to, enum watch_rank rank);
void watch_last(struct watch *w, uint64_t from, uint64_t to, enum watch_rank rank);
void watch_inner(struct watch *w, uint64_t from, uint64_t to);
void watch_lift(struct watch *w);

/* Calls fn after each access of the program to a word that was watched, with the instruction behind the access, or, on
 * some processors, at it. From the thread that is the only one. Returns 0, or a negative errno: words can't be watched here.
 * Without the lock. */
int watch_start(void (*fn)(uint64_t word, const void *instruction));

/* This process is a new child: its parent keeps its watches. */
void watch_forked(void);

#endif
