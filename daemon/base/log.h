// SPDX-License-Identifier: BSD-2-Clause
/* The log: lines on standard error, "pumiced: warn: qp: text", or one JSON object each. Each line is one write, so lines of
 * several threads don't mix. Every line is of an area, whose level can be set alone; a source file says which one its lines
 * are of by defining LOG_AREA before it includes this header. */
#ifndef PUMICE_DAEMON_LOG_H
#define PUMICE_DAEMON_LOG_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR, /* something does not work, and stays so until somebody does something */
    LOG_LEVEL_WARN, /* something went wrong for one client, QP or packet */
    LOG_LEVEL_INFO, /* what a user wants to know once: devices, sessions, decisions taken at start */
    LOG_LEVEL_DEBUG,
};
enum log_area {
    LOG_DAEMON, /* start, end, control connections */
    LOG_NET, /* interfaces, addresses, sockets, ICMP */
    LOG_SESSION, /* programs and their objects */
    LOG_QP, /* NAKs, timeouts, queue pairs that fail */
    LOG_PACKET, /* packets that are dropped */
    LOG_AREAS, /* their number */
};
#ifndef LOG_AREA
#define LOG_AREA LOG_DAEMON
#endif

struct log_levels {
    uint8_t of[LOG_AREAS]; /* enum log_level */
};
/* "warn", or "warn,qp=debug,packet=error": a level for all, and for single areas (daemon, net, session, qp, packet), in
 * any order. 0, or -EINVAL, which leaves *out undefined. What is not named is LOG_LEVEL_WARN. */
int log_levels_parse(const char *text, struct log_levels *out);

/* Lines above their area's level are not written. All start as LOG_LEVEL_WARN. */
void log_set_levels(const struct log_levels *levels);
void log_set_level(enum log_level level); /* of all areas */
void log_set_json(bool json); /* JSON in place of text */
bool log_enabled(enum log_area area, enum log_level level);

void log_write(enum log_area area, enum log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with members for the JSON object; the caller keeps its reference. NULL: none. */
void log_write_fields(enum log_area area, enum log_level level, json_t *fields, const char *text);

/* Keeps one place of the source from filling the log: at most LOG_RATE_BURST lines a second from it; the first line
 * after a silence says how many were left out. */
#define LOG_RATE_BURST 10
struct log_rate {
    _Atomic uint64_t second; /* of the monotonic clock, in which `count` lines were asked for */
    _Atomic uint32_t count;
};
bool log_rate_allows(struct log_rate *rate, uint32_t *left_out);
/* log_enabled and log_rate_allows; tells of lines that were left out. */
bool log_wants(enum log_area area, enum log_level level, struct log_rate *rate);

#define log_error(...) log_write(LOG_AREA, LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_info(...) log_write(LOG_AREA, LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                                                 \
    do {                                                                                                               \
        if (log_enabled(LOG_AREA, LOG_LEVEL_DEBUG))                                                                    \
            log_write(LOG_AREA, LOG_LEVEL_DEBUG, __VA_ARGS__);                                                         \
    } while (0)

/* Rate limited; for everything that a packet or a client can cause. */
#define log_warn(...)                                                                                                  \
    do {                                                                                                               \
        static struct log_rate log_rate_;                                                                              \
        if (log_wants(LOG_AREA, LOG_LEVEL_WARN, &log_rate_))                                                           \
            log_write(LOG_AREA, LOG_LEVEL_WARN, __VA_ARGS__);                                                          \
    } while (0)

#endif
