// SPDX-License-Identifier: BSD-2-Clause
/* The log: lines on standard error, "pumiced: warn: text". Each line is one write, so lines of several threads don't
 * mix. */
#ifndef PUMICE_DAEMON_LOG_H
#define PUMICE_DAEMON_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR, /* something does not work, and stays so until somebody does something */
    LOG_LEVEL_WARN, /* something went wrong for one client, QP or packet */
    LOG_LEVEL_INFO, /* what a user wants to know once: devices, sessions, decisions taken at start */
    LOG_LEVEL_DEBUG,
};

/* Lines above this level are not written. Starts as LOG_LEVEL_WARN. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* "error", "warn", "info", "debug" to a level; -1 if it is none of them. */
int log_level_parse(const char *text);

void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Keeps one place of the source from filling the log: at most LOG_RATE_BURST lines a second from it; the first line
 * after a silence says how many were left out. */
#define LOG_RATE_BURST 10
struct log_rate {
    _Atomic uint64_t second; /* of the monotonic clock, in which `count` lines were asked for */
    _Atomic uint32_t count;
};
bool log_rate_allows(struct log_rate *rate, uint32_t *left_out);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                                                 \
    do {                                                                                                               \
        if (log_enabled(LOG_LEVEL_DEBUG))                                                                              \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                                                   \
    } while (0)

/* Rate limited; for everything that a packet or a client can cause. */
#define log_warn(...)                                                                                                  \
    do {                                                                                                               \
        static struct log_rate log_rate_;                                                                              \
        uint32_t log_left_out_;                                                                                        \
        if (log_enabled(LOG_LEVEL_WARN) && log_rate_allows(&log_rate_, &log_left_out_)) {                              \
            if (log_left_out_)                                                                                         \
                log_write(LOG_LEVEL_WARN, "%u more lines like the next were left out", log_left_out_);                 \
            log_write(LOG_LEVEL_WARN, __VA_ARGS__);                                                                    \
        }                                                                                                              \
    } while (0)

#endif
