// SPDX-License-Identifier: BSD-2-Clause
/* The log with a reader that does not read: nobody waits, lines are counted, and a line tells how many are missing. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"

#define LINES 20000u /* of 100 bytes and more: far more than a pipe and the log hold */

static int reader, saved;

/* Makes a pipe of standard error, and starts the log. */
static void begin(bool json)
{
    int ends[2];

    alarm(60); /* a log that blocks would never return */
    saved = dup(STDERR_FILENO);
    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    reader = ends[0];
    log_set_level(LOG_LEVEL_INFO);
    log_set_json(json);
    log_start(NULL);
}

static void fill(void)
{
    for (unsigned i = 0; i < LINES; i++)
        log_write(LOG_NET, LOG_LEVEL_INFO, "line %u %.*s", i, 80,
                  "................................................................................");
}

/* Reads lines until one reports dropped lines. Returns their number, and counts the others. */
static uint64_t read_report(unsigned *others)
{
    FILE *f = fdopen(reader, "r");
    char line[1024], *at;

    cr_assert_not_null(f);
    *others = 0;
    while (fgets(line, sizeof(line), f)) {
        at = strstr(line, "dropped");
        if (at && strstr(line, "lines of the log")) {
            at = strstr(line, " lines");
            while (at > line && at[-1] >= '0' && at[-1] <= '9')
                at--;
            return strtoull(at, NULL, 10);
        }
        cr_assert_eq(line[strlen(line) - 1], '\n');
        ++*others;
    }
    return 0;
}

static void report(bool json)
{
    unsigned others;

    begin(json);
    fill();
    uint64_t dropped = log_dropped();
    cr_expect_gt(dropped, 0);
    cr_expect_eq(read_report(&others), dropped);
    cr_expect_eq(others + dropped, LINES, "%u lines came", others);
    log_stop();
    dup2(saved, STDERR_FILENO);
}

Test(log_writer, text)
{
    report(false);
}

Test(log_writer, json)
{
    report(true);
}

Test(log_writer, the_end_does_not_wait)
{
    begin(false);
    fill();
    log_stop();
    uint64_t dropped = log_dropped();
    fill(); /* still nobody waits */
    cr_expect_eq(log_dropped(), dropped + LINES);
    dup2(saved, STDERR_FILENO);
}

Test(log_writer, waiting_lines_are_written_at_the_end)
{
    char line[256];

    begin(false);
    log_write(LOG_NET, LOG_LEVEL_INFO, "last");
    log_stop();
    log_write(LOG_NET, LOG_LEVEL_INFO, "later"); /* no thread: written at once */
    dup2(saved, STDERR_FILENO);
    FILE *f = fdopen(reader, "r");
    cr_assert(fgets(line, sizeof(line), f) && strcmp(line, "pumiced: info: net: last\n") == 0);
    cr_assert(fgets(line, sizeof(line), f) && strcmp(line, "pumiced: info: net: later\n") == 0);
    cr_expect_eq(log_dropped(), 0);
}
