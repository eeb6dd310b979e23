// SPDX-License-Identifier: BSD-2-Clause
/* Nobody reads the daemon's log: standard error is a pipe that is full. No thread of the daemon waits for the reader.
 * Lines for which there is no room are counted. */
#include "tests/verbs/hostile/hostile.h"

static void sessions(const struct hostile *h)
{
    for (unsigned i = 0; i < 20; i++) {
        int sock = hostile_connect(h);

        need(hostile_open(sock, NULL, 0) == 0);
        close(sock);
    }
    ok(true, "20 sessions, with a line each");
}

/* Each call logs a line with the specification. */
static void long_lines(const struct hostile *h)
{
    struct pm_fault_req rq = {.seed = 1};
    int sock = hostile_connect(h);
    unsigned n = 0;

    memset(rq.spec, '0', 800);
    memcpy(rq.spec, "loss=0.", 7);
    rq.spec[800] = '%';
    while (n < 600 && hostile_send(sock, PM_OP_FAULT, &rq, sizeof(rq), NULL, 0) && hostile_reply(sock, NULL, 0) == 0)
        n++;
    ok(n == 600, "600 long lines");
    close(sock);
}

/* Reads until the log reports dropped lines. */
static bool reports(int fd)
{
    FILE *f = fdopen(fd, "r");
    char line[4096];

    alarm(60);
    while (f && fgets(line, sizeof(line), f)) {
        if (strstr(line, "lines of the log were dropped"))
            return true;
    }
    return false;
}

/* Fills the pipe. */
static void fill(int fd)
{
    static char line[4096];

    memset(line, '.', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    need(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    while (write(fd, line, sizeof(line)) > 0)
        continue;
    need(fcntl(fd, F_SETFL, 0) == 0);
}

int main(void)
{
    struct hostile h;
    int log[2];

    VT_OWN("a log that nobody reads");
    need(pipe(log) == 0);
    hostile_start(&h, log[1], "--log-level", "info");
    fill(log[1]);
    close(log[1]);
    hostile_attack(&h, sessions, "the log is full");
    long_lines(&h);
    ok(hostile_bystander(&h), "a bystander is served");
    ok(hostile_status_number(&h, "\"log_dropped\"") > 0, "the status counts the dropped lines");
    ok(reports(log[0]), "the log reports them when somebody reads it");
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
