// SPDX-License-Identifier: BSD-2-Clause
/* The log: lines on standard error. A line is text ("pumiced: warn: qp: text") or one JSON object. Each line is written
 * by one system call, so lines of different threads do not mix. No thread waits for the reader of the log: after
 * log_start, a thread of its own writes, and lines for which there is no room are dropped and counted (log_writer.h).
 *
 * Every line belongs to an area, and each area has a level of its own. A source file chooses the area of its lines: it
 * defines LOG_AREA before it includes this header. */
#ifndef PUMICE_DAEMON_BASE_LOG_H
#define PUMICE_DAEMON_BASE_LOG_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR, /* something does not work, and needs the user to repair it */
    LOG_LEVEL_WARN, /* one client, QP or packet failed */
    LOG_LEVEL_INFO, /* facts that a user needs once: devices, sessions, decisions at start */
    LOG_LEVEL_DEBUG, /* everything else */
};
enum log_area {
    LOG_DAEMON, /* start, end, control connections */
    LOG_NET, /* interfaces, addresses, sockets, ICMP */
    LOG_SESSION, /* programs and their objects */
    LOG_QP, /* NAKs, timeouts, QPs that fail */
    LOG_PACKET, /* packets that the daemon drops */
    LOG_AREAS, /* their number */
};
#ifndef LOG_AREA
#define LOG_AREA LOG_DAEMON
#endif

/* The level of each area. */
struct log_levels {
    uint8_t of[LOG_AREAS]; /* enum log_level */
};
/* Parses levels such as "warn" or "warn,qp=debug,packet=error": one level for all areas, and levels for single areas
 * (daemon, net, session, qp, packet), in any order. An area without a level gets LOG_LEVEL_WARN. 0, or -EINVAL, which
 * leaves *out undefined. */
int log_levels_parse(const char *text, struct log_levels *out);

/* Starts the thread that writes. It calls enter() first, unless that is NULL. Before, and if there can be no thread,
 * lines are written at once. */
void log_start(void (*enter)(void));
/* Ends that thread. It writes the waiting lines if standard error takes them within a second. */
void log_stop(void);
/* The number of lines that were dropped since the start. */
uint64_t log_dropped(void);

/* Sets the levels. Lines above the level of their area are not written. All areas start with LOG_LEVEL_WARN. */
void log_set_levels(const struct log_levels *levels);
/* Sets one level for all areas. */
void log_set_level(enum log_level level);
/* Chooses JSON (true) or text. */
void log_set_json(bool json);
/* True if lines of this level are written. */
bool log_enabled(enum log_area area, enum log_level level);

/* Writes one line, without a rate limit. */
void log_write(enum log_area area, enum log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Writes one line with members for the JSON object; fields NULL: none. The caller keeps its reference. */
void log_write_fields(enum log_area area, enum log_level level, json_t *fields, const char *text);

/* The rate limit of one place in the source: at most LOG_RATE_BURST lines a second. */
#define LOG_RATE_BURST 10
struct log_rate {
    _Atomic uint64_t second; /* a second of the monotonic clock */
    _Atomic uint32_t count; /* lines in this second, left-out ones included */
};
/* True if a line may be written now. *left_out: the lines that were left out in the last second that had any. */
bool log_rate_allows(struct log_rate *rate, uint32_t *left_out);
/* True if the level and the rate allow a line. Logs how many lines were left out before it. */
bool log_wants(enum log_area area, enum log_level level, struct log_rate *rate);

#define log_error(...) log_write(LOG_AREA, LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_info(...) log_write(LOG_AREA, LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                                                 \
    do {                                                                                                               \
        if (log_enabled(LOG_AREA, LOG_LEVEL_DEBUG))                                                                    \
            log_write(LOG_AREA, LOG_LEVEL_DEBUG, __VA_ARGS__);                                                         \
    } while (0)

/* With a rate limit: a packet or a client can cause such a line at any rate. */
#define log_warn(...)                                                                                                  \
    do {                                                                                                               \
        static struct log_rate log_rate_;                                                                              \
        if (log_wants(LOG_AREA, LOG_LEVEL_WARN, &log_rate_))                                                           \
            log_write(LOG_AREA, LOG_LEVEL_WARN, __VA_ARGS__);                                                          \
    } while (0)

#endif
