// SPDX-License-Identifier: BSD-2-Clause
/* The watchdog: a thread that looks at the other threads once a second, unless all of them wait for events. A thread is
 * stuck if one turn of its loop takes longer than WATCHDOG_STUCK_NS. The watchdog writes to the log what a stuck thread
 * does, for which client, and since when. It writes again each time the duration has doubled, and when the thread goes on.
 *
 * Under a service manager with WatchdogSec, the watchdog reports that the daemon is alive, as long as no thread is stuck
 * for half of that time. Then the service manager ends the daemon and starts it again: sessions of a stuck device would
 * hang for ever, and programs notice the end of the daemon. A wait that ends by itself (activity_may_last) does not count.
 * While all threads wait for events, the watchdog reports once in a quarter of that time.
 *
 * The watchdog also bounds the end of the daemon (watchdog_end_within). */
#ifndef PUMICE_DAEMON_SERVER_WATCHDOG_H
#define PUMICE_DAEMON_SERVER_WATCHDOG_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/activity.h"
#include "daemon/base/clock.h"
#include "daemon/base/error_text.h"
#include "pumice/abi.h"

/* Longer than a crowded machine keeps a thread from running. */
#define WATCHDOG_STUCK_NS (2 * NS_PER_S)
/* Seconds from the request to end until the daemon exits at the latest. */
#define WATCHDOG_END_S 10u

struct watchdog_thread {
    char name[PM_NAME_MAX];
    const struct activity *activity;
    uint64_t stuck_since; /* the turn that was reported; 0: none */
    uint64_t report_next; /* the duration at which that turn is reported again, in ns */
    char doing[96]; /* the text of the latest report */
};

struct watchdog {
    struct watchdog_thread thread[PM_DEVICES_MAX + 2];
    pthread_t id;
    struct activity_watch watch; /* of its threads */
    pthread_mutex_t lock;
    bool running;
    /* Protected by lock. */
    unsigned n;
    bool stop;
    uint64_t end_by; /* clock_ns; 0: the daemon does not end yet */
};

/* Adds a thread, before watchdog_start. The first is the main thread. The others are that of connection management, and
 * those of the devices. The activity must live until watchdog_stop or watchdog_forget_devices. */
void watchdog_add(struct watchdog *w, const char *name, struct activity *a);
/* Starts the thread of the watchdog. 0, or -errno with why. */
int watchdog_start(struct watchdog *w, char why[ERROR_TEXT_MAX]);
/* The daemon ends now. If it still exists after this many seconds, the watchdog writes to the log which threads are
 * stuck, and the process exits with status 1. The kernel then frees what the threads held. */
void watchdog_end_within(struct watchdog *w, unsigned seconds);
/* All threads but the main one have ended. */
void watchdog_forget_devices(struct watchdog *w);
void watchdog_stop(struct watchdog *w);

/* The threads as JSON: [ { name, hangs (it is stuck), busy_s (since when its turn lasts; 0: it waits for events), doing (null: it
 * waits), session, pid (null: not for a client) } ]. clients: whether to name the clients, whom only the
 * administrator may see. Any thread may call it after watchdog_start. */
json_t *watchdog_json(const struct watchdog *w, bool clients);
/* Is this activity's thread stuck? */
bool watchdog_is_stuck(const struct activity *a, uint64_t now);

/* One look at all threads, at time now. Returns the longest time for which a thread has been stuck, in ns; 0: none is.
 * For the watchdog's thread, and for tests. */
uint64_t watchdog_look(struct watchdog *w, uint64_t now);

#endif
