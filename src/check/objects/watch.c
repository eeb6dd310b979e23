// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/watch.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/check/base/handler.h"

#define CODE_PERF 6 /* TRAP_PERF of the kernel's siginfo.h, which the C library may not know yet */
#define FLAG_ASYNC 1u /* TRAP_PERF_FLAG_ASYNC: the signal was blocked */

static void (*touched)(uint64_t word, const void *instruction);

static struct slot {
    int fd; /* an event of this thread and of all that it starts */
    struct watch *by; /* NULL: free */
    enum watch_rank rank;
} slots[WATCHES_MAX];
static unsigned slots_open;

/* --- words ------------------------------------------------------------------------------------- */

struct word {
    uint64_t at;
    unsigned bytes;
};

/* A register watches aligned words only. */
static struct word word_at(uint64_t from, uint64_t to, bool last)
{
    unsigned bytes = 8;

    while (bytes > 1 && ((last ? to : from) % bytes || to - from < bytes))
        bytes /= 2;
    return (struct word){last ? to - bytes : from, bytes};
}

/* --- registers --------------------------------------------------------------------------------- */

static struct perf_event_attr attr_of(struct word w, bool enabled)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(struct perf_event_attr),
        .bp_type = HW_BREAKPOINT_RW,
        .bp_addr = w.at,
        .bp_len = w.bytes,
        .sample_period = 1,
        .disabled = !enabled,
        .exclude_kernel = 1, /* system calls of the program, and all that others write */
        .exclude_hv = 1,
        .inherit = 1,
        .inherit_thread = 1,
        .remove_on_exec = 1,
        .sigtrap = 1,
    };
}

/* The word that a free register has: it is disabled. */
static const struct word nothing = {(uintptr_t)&touched, sizeof(touched)};

static int open_slots(void)
{
    struct perf_event_attr attr = attr_of(nothing, false);

    for (slots_open = 0; slots_open < WATCHES_MAX; slots_open++) {
        long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0) /* a debugger may have the other registers */
            return slots_open ? 0 : -errno;
        slots[slots_open] = (struct slot){.fd = (int)fd};
    }
    return 0;
}

static bool set(const struct slot *s, struct word w, bool enabled)
{
    struct perf_event_attr attr = attr_of(w, enabled);

    return ioctl(s->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr) == 0;
}

/* A free register, or that of the least important watch that is less important. NULL: none. */
static struct slot *slot_for(enum watch_rank rank)
{
    struct slot *found = NULL;

    for (unsigned i = 0; i < slots_open; i++) {
        if (!slots[i].by)
            return &slots[i];
        if (slots[i].rank < rank && (!found || slots[i].rank < found->rank))
            found = &slots[i];
    }
    if (found)
        watch_lift(found->by);
    return found;
}

static bool is_watched(uint64_t word)
{
    for (unsigned i = 0; i < slots_open; i++) {
        if (slots[i].by && slots[i].by->word == word)
            return true;
    }
    return false;
}

static void watch(struct watch *w, struct word word, enum watch_rank rank)
{
    struct slot *s = is_watched(word.at) ? NULL : slot_for(rank);

    if (!s || !set(s, word, true))
        return;
    s->by = w;
    s->rank = rank;
    *w = (struct watch){word.at, (uint8_t)word.bytes, (uint8_t)(s - slots + 1)};
}

void watch_first(struct watch *w, uint64_t from, uint64_t to, enum watch_rank rank)
{
    if (slots_open && from < to)
        watch(w, word_at(from, to, false), rank);
}

void watch_last(struct watch *w, uint64_t from, uint64_t to, enum watch_rank rank)
{
    if (slots_open && from < to)
        watch(w, word_at(from, to, true), rank);
}

void watch_inner(struct watch *w, uint64_t from, uint64_t to)
{
    static uint32_t turn;
    uint64_t begin = from / 8 * 8 + 8, words = begin + 8 < to ? (to - 1 - begin) / 8 : 0;

    if (slots_open && words)
        watch(w, (struct word){begin + 8 * (turn++ * UINT64_C(2654435761) % words), 8}, WATCH_INNER);
}

void watch_lift(struct watch *w)
{
    if (!w->slot)
        return;
    set(&slots[w->slot - 1], nothing, false);
    slots[w->slot - 1].by = NULL;
    *w = (struct watch){0};
}

/* --- the signal -------------------------------------------------------------------------------- */

static bool on_trap(siginfo_t *info, void *context)
{
    struct {
        void *address;
        unsigned long data;
        uint32_t type, flags;
    } perf; /* of the kernel's siginfo.h */

    if (info->si_code != CODE_PERF)
        return false;
    memcpy(&perf, (const char *)info + offsetof(siginfo_t, si_addr), sizeof(perf));
    if (!(perf.flags & FLAG_ASYNC)) /* else the place is that where the thread allowed the signal again */
        touched((uintptr_t)perf.address, handler_instruction(context));
    return true;
}

int watch_start(void (*fn)(uint64_t word, const void *instruction))
{
    int err = open_slots();

    touched = fn;
    if (!err)
        handler_take(SIGTRAP, on_trap);
    return err;
}

void watch_forked(void)
{
    unsigned had = slots_open;

    for (unsigned i = 0; i < had; i++) {
        if (slots[i].by)
            *slots[i].by = (struct watch){0};
        close(slots[i].fd);
    }
    if (had)
        open_slots();
}
