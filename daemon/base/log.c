// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/log_writer.h"

#define LINE_MAX_ 1024 /* longer lines are cut */
#define LOG_STOP_MS 1000 /* how long the end of the daemon waits for a reader of the log */

static _Atomic uint8_t max_level[LOG_AREAS] = {
    [LOG_DAEMON] = LOG_LEVEL_WARN, [LOG_NET] = LOG_LEVEL_WARN,    [LOG_SESSION] = LOG_LEVEL_WARN,
    [LOG_QP] = LOG_LEVEL_WARN,     [LOG_PACKET] = LOG_LEVEL_WARN,
};
static _Atomic bool as_json;

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const area_names[LOG_AREAS] = {
    [LOG_DAEMON] = "daemon", [LOG_NET] = "net", [LOG_SESSION] = "session", [LOG_QP] = "qp", [LOG_PACKET] = "packet",
};
#define NUM_LEVELS (sizeof(level_names) / sizeof(level_names[0]))

void log_set_levels(const struct log_levels *levels)
{
    for (unsigned i = 0; i < LOG_AREAS; i++)
        atomic_store_explicit(&max_level[i], levels->of[i], memory_order_relaxed);
}

void log_set_level(enum log_level level)
{
    struct log_levels levels;

    memset(levels.of, (int)level, sizeof(levels.of));
    log_set_levels(&levels);
}

void log_set_json(bool json)
{
    atomic_store_explicit(&as_json, json, memory_order_relaxed);
}

bool log_enabled(enum log_area area, enum log_level level)
{
    return (uint8_t)level <= atomic_load_explicit(&max_level[area], memory_order_relaxed);
}

/* --- settings -------------------------------------------------------------------------------------------------- */

static int index_of(const char *const *names, unsigned n, const char *text, size_t len)
{
    for (unsigned i = 0; i < n; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
            return (int)i;
    }
    return -EINVAL;
}

int log_levels_parse(const char *text, struct log_levels *out)
{
    bool named[LOG_AREAS] = {false};

    memset(out->of, LOG_LEVEL_WARN, sizeof(out->of));
    for (;;) {
        size_t len = strcspn(text, ","), name = strcspn(text, "=,");
        int area = name < len ? index_of(area_names, LOG_AREAS, text, name) : 0;
        const char *value = name < len ? text + name + 1 : text;
        int level = index_of(level_names, NUM_LEVELS, value, (size_t)(text + len - value));

        if (area < 0 || level < 0)
            return -EINVAL;
        for (unsigned i = 0; i < LOG_AREAS && name == len; i++) {
            if (!named[i])
                out->of[i] = (uint8_t)level;
        }
        if (name < len) {
            out->of[area] = (uint8_t)level;
            named[area] = true;
        }
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

/* --- writing --------------------------------------------------------------------------------------------------- */

/* Returns the line as one JSON object with a newline. The caller frees it. NULL: out of memory. */
static char *json_line(enum log_area area, enum log_level level, json_t *fields, const char *text, size_t *len)
{
    struct timespec now;
    struct tm tm;
    char stamp[40], *line;
    json_t *o;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    *len = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + *len, sizeof(stamp) - *len, ".%06ldZ", now.tv_nsec / 1000);
    o = json_pack("{s:s, s:s, s:s, s:s%}", "time", stamp, "level", level_names[level], "area", area_names[area], "text",
                  text, strlen(text));
    if (!o) { /* the text is not UTF-8 */
        o = json_pack("{s:s, s:s, s:s, s:s}", "time", stamp, "level", level_names[level], "area", area_names[area],
                      "text", "(not UTF-8)");
    }
    if (fields)
        json_object_update(o, fields);
    line = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    if (!line)
        return NULL;
    *len = strlen(line);
    line[(*len)++] = '\n'; /* in place of the final 0 */
    return line;
}

/* Makes a line of text in line[size]. Returns its length; 0: an error. */
static size_t text_line(enum log_area area, enum log_level level, const char *text, char *line, size_t size)
{
    int n = snprintf(line, size - 1, "pumiced: %s: %s: %s", level_names[level], area_names[area], text);

    if (n < 0)
        return 0;
    if ((size_t)n > size - 2)
        n = (int)size - 2; /* cut */
    line[n] = '\n';
    return (size_t)n + 1;
}

static bool is_json(void)
{
    return atomic_load_explicit(&as_json, memory_order_relaxed);
}

void log_write_fields(enum log_area area, enum log_level level, json_t *fields, const char *text)
{
    char line[LINE_MAX_];
    size_t len;

    if (!log_enabled(area, level))
        return;
    if (is_json()) {
        char *json = json_line(area, level, fields, text, &len);

        if (json)
            log_writer_put(json, len);
        free(json);
        return;
    }
    len = text_line(area, level, text, line, sizeof(line));
    if (len)
        log_writer_put(line, len);
}

void log_write(enum log_area area, enum log_level level, const char *fmt, ...)
{
    char text[LINE_MAX_];
    va_list ap;

    if (!log_enabled(area, level))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_write_fields(area, level, NULL, text);
}

/* --- the writer ------------------------------------------------------------------------------------------------ */

static size_t gap_line(uint64_t n, char *line, size_t size)
{
    char text[128];
    size_t len;

    snprintf(text, sizeof(text), "%" PRIu64 " lines of the log were dropped, because standard error took no more", n);
    if (!is_json())
        return text_line(LOG_DAEMON, LOG_LEVEL_WARN, text, line, size);
    char *json = json_line(LOG_DAEMON, LOG_LEVEL_WARN, NULL, text, &len);
    if (!json || len > size)
        len = 0;
    if (len)
        memcpy(line, json, len);
    free(json);
    return len;
}

void log_start(void (*enter)(void))
{
    if (!log_writer_start(gap_line, enter))
        log_error("no thread for the log: a reader of standard error that does not read can stop the daemon");
}

void log_stop(void)
{
    log_writer_stop(LOG_STOP_MS);
}

uint64_t log_dropped(void)
{
    return log_writer_dropped();
}

/* --- rate limit ------------------------------------------------------------------------------------------------ */

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

bool log_wants(enum log_area area, enum log_level level, struct log_rate *rate)
{
    uint32_t left_out;

    if (!log_enabled(area, level) || !log_rate_allows(rate, &left_out))
        return false;
    if (left_out)
        log_write(area, level, "%u more lines like the next were left out", left_out);
    return true;
}
