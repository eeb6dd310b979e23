// SPDX-License-Identifier: BSD-2-Clause
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

static _Atomic int max_level = LOG_LEVEL_WARN;

static const char *const level_names[] = {"error", "warn", "info", "debug"};
#define NUM_LEVELS (sizeof(level_names) / sizeof(level_names[0]))

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

int log_level_parse(const char *text)
{
    for (unsigned i = 0; i < NUM_LEVELS; i++) {
        if (strcmp(text, level_names[i]) == 0)
            return (int)i;
    }
    return -1;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    int head, n;

    if (!log_enabled(level))
        return;
    head = snprintf(line, sizeof(line), "pumiced: %s: ", level_names[level]);
    va_start(ap, fmt);
    n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    n += head;
    if ((size_t)n > sizeof(line) - 2)
        n = (int)sizeof(line) - 2; /* cut */
    line[n] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n + 1) < 0) {
        /* Nobody left to tell. */
    }
}

bool log_rate_allows(struct log_rate *rate, uint32_t *left_out)
{
    uint64_t second = clock_ns() / NS_PER_S + 1;
    uint64_t old = atomic_exchange_explicit(&rate->second, second, memory_order_relaxed);
    uint32_t count;

    *left_out = 0;
    if (old != second) {
        count = atomic_exchange_explicit(&rate->count, 1, memory_order_relaxed);
        *left_out = count > LOG_RATE_BURST ? count - LOG_RATE_BURST : 0;
        return true;
    }
    return atomic_fetch_add_explicit(&rate->count, 1, memory_order_relaxed) < LOG_RATE_BURST;
}
