// SPDX-License-Identifier: BSD-2-Clause
/* Decides what a thread does when its poll of a CQ found nothing: return, yield, or sleep. The functions get times and
 * counts and return an action. They make no system call. datapath/poll_wait.c makes the calls.
 *
 * Three small state machines decide together. Two are here.
 *
 * 1. How often does the thread poll? (vb_poll_thread.rhythm) A thread that polls only now and then must not wait.
 * Example: UCX's helper thread polls its queues every few milliseconds and holds a spin lock meanwhile. If it waited,
 * the working thread would spin on that lock.
 *
 *                      BUSY_POLLS empty polls in a row
 *       OCCASIONAL ------------------------------------> BUSY
 *                  <------------------------------------
 *                       no empty poll for BUSY_GAP_NS
 *
 * 2. How does a busy thread wait for the daemon? (vb_poll_thread.phase) A yield returns sooner than a wakeup. But after
 * many yields without news, the next completion is probably far away, and other programs can have the processor.
 *
 *                  YIELDS or YIELDS_SAME turns without news
 *         YIELDING ------------------------------------> WAITING
 *                  <------------------------------------
 *              the daemon published something, or the thread
 *                       polls another context now
 *
 * With YIELDS_SAME the thread shares its processor with the daemon. With YIELDS other threads must have run there since
 * the last count.
 *
 * 3. Do other programs compute on the processors? In CALM they do not, in CROWDED they do: poll_crowd.h says so for all
 * threads of a context, and poll_brief.h for this thread.
 *
 * Not every empty poll of a busy thread is its turn to give the processor away:
 *   - A thread that has just posted a request has work: it prepares the next request, as long as its queue has room. If
 *     it gave its processor away after each request, the daemon would get one request at a time. It would sleep in
 *     between, and each request would have to wake it.
 *   - A thread that polls several queues in turn does it once in each round, at the queue where it did it last.
 *   - Threads that share a queue do it only every SHARED_NS. Their callers hold a lock around the poll, as UCX does for
 *     MPI_THREAD_MULTIPLE. If the holder of a spin lock always gives its processor away, the other threads starve.
 *
 * The action of a turn:
 *
 *                        the thread polls only this context      it polls several contexts
 *      YIELDING, CALM    yield                                   yield
 *      YIELDING, CROWDED sleep, until the daemon publishes       sleep
 *      WAITING           wait for the daemon                     (like YIELDING)
 *
 * Before the action, a thread may move to another processor: vb_poll_should_leave, vb_poll_should_leave_crowd,
 * vb_poll_should_join.
 *
 * A thread can't wait for a daemon that is gone or that sleeps, because such a daemon would not wake it. Then the
 * thread acts as in YIELDING. */
#ifndef PUMICE_SRC_VERBS_BASE_POLL_STATE_H
#define PUMICE_SRC_VERBS_BASE_POLL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/verbs/base/poll_brief.h"
#include "src/verbs/base/poll_crowd.h"

/* --- thresholds -------------------------------------------------------------------------------- */
/* clang-format off */

/* A thread that pauses longer is no busy poller. The value is below the few milliseconds between two polls of UCX's
 * helper thread. On a machine where yields cost more than usual it is longer, up to MAX. */
#define VB_POLL_BUSY_GAP_NS         UINT64_C(1000000)
#define VB_POLL_BUSY_GAP_MAX_NS     UINT64_C(2500000)
/* Empty polls before a thread is a busy poller. Measured together with one wait per round of queues, on a job of 64
 * ranks of Open MPI on two cores: 30 to 50 s instead of 150 s. The number 8 is chosen, not measured. */
#define VB_POLL_BUSY_POLLS          8
/* After so many empty polls of other queues, the thread has its turn at any queue. The value is more than the number of
 * queues that a thread polls in turn. Chosen, not measured. */
#define VB_POLL_OTHERS_MAX          16
/* After so many empty polls of one context in a row, the library assumes that the thread polls no other context.
 * Follows from OTHERS_MAX. */
#define VB_POLL_ALONE               (2 * VB_POLL_OTHERS_MAX)
/* The least time between two turns at a shared queue: more than a time slice. Measured with three threads in each of
 * two ranks of Open MPI on a busy machine: 6 to 11 s, instead of 40 s or for ever. */
#define VB_POLL_SHARED_NS           UINT64_C(5000000)
/* After a second thread polled a queue, the queue counts as shared for this time. Chosen, not measured. */
#define VB_POLL_SHARED_PERIOD_NS    UINT64_C(10000000000)

/* Turns without news before the thread waits. YIELDS: the daemon is on another processor. YIELDS_SAME: it is on the
 * same one. There the thread waits sooner, because a yield may not give the processor to the daemon. This is worst for
 * a daemon in another session, because Linux first divides a processor between sessions (autogroup). The numbers are
 * chosen, not measured. */
#define VB_POLL_YIELDS              32
#define VB_POLL_YIELDS_SAME         8
/* How long the daemon lets a waiting thread sleep: doubled from MIN to MAX while there is no news. So a thread that
 * also polls other things loses no more time than it has waited already. Measured together with one processor for each
 * daemon, before daemons and ranks shared a session: twice the bandwidth of 1 MiB messages between MPI ranks on two
 * processors. The numbers are chosen, not measured. */
#define VB_POLL_WAIT_MIN_US         20
#define VB_POLL_WAIT_MAX_US         320
/* If the daemon dies, a wait ends after this time. The value is longer than a tick of the kernel, because a timer that
 * ends before the next tick costs 5 us (measured). */
#define VB_POLL_DEATH_NS            UINT64_C(20000000)

/* Turns in a row on another processor than the daemon wants, before the thread moves. The scheduler may move one of the two
 * by itself. Chosen, not measured. */
#define VB_POLL_MOVE_TURNS          32
/* A thread shares its processor if another thread ran there in so many of these turns. Chosen, not measured. */
#define VB_POLL_SHARED_TURNS        (VB_POLL_MOVE_TURNS / 2)
/* The least time between two moves: MIN after the first one. It doubles with each move, up to MAX, because a scheduler
 * that brings the thread back again and again has a reason. After a longer time without a move it is MIN again. */
#define VB_POLL_MOVE_MIN_NS         UINT64_C(1000000)
#define VB_POLL_MOVE_MAX_NS         UINT64_C(20000000)
/* Two pauses between empty polls within NEAR show that the thread does not only wait in polls: it computes, or waits for
 * bytes in memory that its peer writes. (A pause is longer than BUSY_GAP.) Then it needs a processor for itself, and does not
 * leave that of the daemon for the next PERIOD, unless the daemon is busy all the time. Chosen, not measured. */
#define VB_POLL_PAUSES_NEAR_NS      UINT64_C(100000000)
#define VB_POLL_PAUSES_PERIOD_NS    UINT64_C(1000000000)

/* Time between two checks that the daemon lives. Chosen, not measured. */
#define VB_POLL_CHECK_NS            UINT64_C(50000000)
/* clang-format on */

/* --- state ------------------------------------------------------------------------------------- */

enum vb_poll_rhythm { VB_POLL_OCCASIONAL, VB_POLL_BUSY };
enum vb_poll_phase { VB_POLL_YIELDING, VB_POLL_WAITING };

/* The state of a thread, initially zero. Times are ns of CLOCK_MONOTONIC. The pointers are only compared. */
struct vb_poll_thread {
    enum vb_poll_rhythm rhythm;
    unsigned polls; /* OCCASIONAL: empty polls, none of them long after the one before */
    uint64_t last; /* end of the last empty poll */
    uint64_t paused_at; /* end of the last pause between two empty polls; 0: there was none */
    uint64_t pauses_until; /* until then, the thread counts as one that pauses */
    bool posted; /* the thread posted a send request since its last empty poll */
    const void *turn_queue; /* where the thread had its last turn */
    unsigned others; /* empty polls of other queues since */
    uint64_t turn_at; /* end of the last turn */
    const void *context; /* polled last */
    unsigned alone; /* empty polls in a row of this context; stops at VB_POLL_ALONE */
    enum vb_poll_phase phase;
    unsigned yields; /* turns without news */
    long switches; /* involuntary context switches of the thread, at the last count */
    uint32_t wait_us; /* how long the next wait is */
    unsigned together; /* turns in a row on the processor of the daemon, while it wants its clients apart */
    unsigned away; /* turns in a row on another processor, while it wants its clients beside it */
    long away_switches; /* involuntary context switches of the thread at the beginning of these turns */
    uint64_t moved_at; /* ns: when the thread last moved */
    uint64_t stays; /* ns: how long it stays after a move; 0: it never moved */
    struct vb_poll_nap nap;
    struct vb_poll_brief brief;
    const void *page; /* session page of the context of the last turn */
    /* The published completions on that page at the end of the last turn. The thread has polled all of them since. */
    uint32_t published;
};

/* The state of a queue, shared by all threads that poll it. */
struct vb_poll_queue {
    const void *_Atomic poller; /* the thread that last polled it in vain; only compared */
    _Atomic uint64_t shared_until; /* ns: until then the queue counts as shared by several threads */
};

/* The facts that a thread knows in its turn. */
struct vb_poll_view {
    uint64_t now; /* ns */
    bool alone; /* vb_poll_is_alone */
    bool daemon_sleeps;
    bool same_cpu; /* the daemon last ran on the processor of this thread; counts only if alone */
    bool apart; /* it wants its clients to be on others */
    bool away; /* even if other programs compute there */
    bool beside; /* it wants its clients there, if they have no processor for themselves */
    bool beside_crowded; /* it wants them there, if their processor is crowded */
};

enum vb_poll_action {
    VB_POLL_YIELD, /* give the processor away, then call vb_poll_yielded */
    VB_POLL_SLEEP, /* sleep for vb_poll_backoff, then call vb_poll_slept */
    /* Sleep until the daemon publishes something, for at most vb_poll_nap_limit. Then call vb_poll_napped. */
    VB_POLL_SLEEP_OR_NEWS,
    VB_POLL_WAIT, /* ask the daemon for a wakeup after vb_poll_next_wait_us, and wait for it */
    /* Count the involuntary context switches of the thread, and call vb_poll_choose_counted. */
    VB_POLL_COUNT_SWITCHES,
};

/* --- a poll that found nothing ----------------------------------------------------------------- */

/* Notes an empty poll of queue, which is one of context. Returns whether it is the turn of the thread to give the
 * processor away. */
bool vb_poll_turn(struct vb_poll_thread *t, const void *context, struct vb_poll_queue *queue, uint64_t now);

/* Does the thread poll only the context with this session page? Then it may sleep until the daemon of that context
 * wakes it. False also if the daemon is gone, or if the last turn was not at this page: then the thread does not know
 * which published completions it has polled. */
bool vb_poll_is_alone(const struct vb_poll_thread *t, const void *page, bool gone);

/* Chooses the action of a turn. */
enum vb_poll_action vb_poll_choose(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                   const struct vb_poll_view *view);
/* Chooses the action after VB_POLL_COUNT_SWITCHES. switches is the count. The kernel counts a sched_yield as an
 * involuntary switch if another thread ran. */
enum vb_poll_action vb_poll_choose_counted(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                           const struct vb_poll_view *view, long switches);

/* Should the thread leave the processor of the daemon now? True at most once in a while. To be called once in a turn. */
bool vb_poll_should_leave(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd, const struct vb_poll_view *view);
/* Should the thread leave a crowded processor for that of the daemon now? True at most once in a while. */
bool vb_poll_should_leave_crowd(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                const struct vb_poll_view *view);
/* Is vb_poll_should_join to be called now, with the count of involuntary context switches? To be called once in a turn. */
bool vb_poll_counts_away(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd, const struct vb_poll_view *view);
/* Should the thread go to the processor of the daemon now? True at most once in a while. */
bool vb_poll_should_join(struct vb_poll_thread *t, const struct vb_poll_view *view, long switches);

/* Returns how long the wait of VB_POLL_WAIT is, in us. Doubles the next one, up to VB_POLL_WAIT_MAX_US. */
uint32_t vb_poll_next_wait_us(struct vb_poll_thread *t);
/* Ends a turn at the time after. page is the session page of the context, and published what the daemon wrote there
 * (pm_session_page.published). A higher count of completions is the news that ends WAITING. */
void vb_poll_turn_done(struct vb_poll_thread *t, const void *page, uint32_t published, uint64_t after);

#endif
