// SPDX-License-Identifier: BSD-2-Clause
/* The watchdog: which threads are stuck, its lines in the log, its reports to the service manager, and the end of a
 * daemon that cannot end by itself. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/server/watchdog.h"

static struct watchdog w;
static struct activity main_thread, device;

static void start(void)
{
    watchdog_add(&w, "main", &main_thread);
    watchdog_add(&w, "pumice0", &device);
}

TestSuite(watchdog, .init = start, .timeout = 60);

static int log_file;
static off_t log_read;

/* From now on the log goes to a file. */
static void log_begin(void)
{
    char path[] = "/tmp/test_watchdog.XXXXXX";

    log_file = mkstemp(path);
    cr_assert_geq(log_file, 0);
    unlink(path);
    dup2(log_file, STDERR_FILENO);
}

/* All lines since the last call. */
static const char *log_text(void)
{
    static char text[1024];
    ssize_t n = pread(log_file, text, sizeof(text) - 1, log_read);

    text[n > 0 ? n : 0] = 0;
    log_read += n > 0 ? n : 0;
    return text;
}

Test(watchdog, a_turn_that_takes_long)
{
    uint64_t t = 100 * NS_PER_S;

    log_begin();
    activity_turn(&device, t);
    activity_begin(&device, "REG_MR", 3, 4711);
    cr_expect_eq(watchdog_look(&w, t + WATCHDOG_STUCK_NS - 1), 0);
    cr_expect_str_eq(log_text(), "");
    cr_expect_eq(watchdog_look(&w, t + WATCHDOG_STUCK_NS), WATCHDOG_STUCK_NS);
    cr_expect(watchdog_is_stuck(&device, t + WATCHDOG_STUCK_NS));
    cr_expect_str_eq(log_text(),
                     "pumiced: error: daemon: thread pumice0 has been stuck for 2.0 s, in REG_MR of session 3, "
                     "pid 4711\n");
    watchdog_look(&w, t + 3 * NS_PER_S);
    cr_expect_str_eq(log_text(), "", "reported too often");
    watchdog_look(&w, t + 5 * NS_PER_S);
    cr_expect_not_null(strstr(log_text(), "stuck for 5.0 s"));
    activity_done(&device);
    activity_turn(&device, t + 6 * NS_PER_S);
    cr_expect_eq(watchdog_look(&w, t + 6 * NS_PER_S), 0);
    cr_expect_not_null(strstr(log_text(), "thread pumice0 goes on. It was stuck for up to 6.0 s, in REG_MR"));
    activity_rest(&device);
    cr_expect_eq(watchdog_look(&w, t + 1000 * NS_PER_S), 0, "it waits for events");
    cr_expect_str_eq(log_text(), "");
}

Test(watchdog, the_status_names_each_thread)
{
    const char *name, *doing;
    double busy;
    int stuck;

    activity_turn(&device, clock_ns() - 3 * NS_PER_S);
    activity_begin(&device, "OPEN", 0, 17);
    json_t *list = watchdog_json(&w, true);
    cr_assert_eq(json_array_size(list), 2);
    cr_assert_eq(json_unpack(json_array_get(list, 1), "{s:s, s:b, s:f, s:s}", "name", &name, "hangs", &stuck, "busy_s",
                             &busy, "doing", &doing),
                 0);
    cr_expect_str_eq(name, "pumice0");
    cr_expect_str_eq(doing, "OPEN");
    cr_expect(stuck);
    cr_expect_geq(busy, 2.9);
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(list, 1), "pid")), 17);
    cr_expect(json_is_null(json_object_get(json_array_get(list, 1), "session")));
    cr_expect(json_is_false(json_object_get(json_array_get(list, 0), "hangs")));
    cr_expect(json_is_null(json_object_get(json_array_get(list, 0), "doing")));
    json_decref(list);
    list = watchdog_json(&w, false);
    cr_expect(json_is_null(json_object_get(json_array_get(list, 1), "pid")), "other users do not see the client");
    json_decref(list);
}

/* A wait with a limit of its own: the log tells of it, and the service manager has no reason to end the daemon. */
Test(watchdog, a_turn_that_may_last)
{
    uint64_t t = 100 * NS_PER_S;

    log_begin();
    activity_turn(&device, t);
    activity_may_last(&device, t + 20 * NS_PER_S);
    cr_expect_eq(watchdog_look(&w, t + 20 * NS_PER_S - 1), 0);
    cr_expect_not_null(strstr(log_text(), "thread pumice0 has been stuck"));
    cr_expect(watchdog_is_stuck(&device, t + 19 * NS_PER_S), "the status tells of it, too");
    cr_expect_eq(watchdog_look(&w, t + 20 * NS_PER_S), 20 * NS_PER_S);
}

/* Reads what the watchdog sends to the service manager within a while. */
static bool notified(int sock, int ms)
{
    struct pollfd p = {sock, POLLIN, 0};
    char text[64];

    if (poll(&p, 1, ms) != 1)
        return false;
    ssize_t n = recv(sock, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return strcmp(text, "WATCHDOG=1") == 0;
}

/* A service manager that wants a report within this time. Returns its socket, whose address is *sa. */
static int listen_for_reports(struct sockaddr_un *sa, const char *usec)
{
    int sock = socket(AF_UNIX, SOCK_DGRAM, 0);
    char pid[16];

    snprintf(sa->sun_path, sizeof(sa->sun_path), "/tmp/test_watchdog.%d", (int)getpid());
    cr_assert_eq(bind(sock, (const struct sockaddr *)sa, sizeof(*sa)), 0);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("NOTIFY_SOCKET", sa->sun_path, 1);
    setenv("WATCHDOG_PID", pid, 1);
    setenv("WATCHDOG_USEC", usec, 1);
    return sock;
}

Test(watchdog, the_service_manager_hears_of_stuck_threads)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = listen_for_reports(&sa, "400000");
    char why[ERROR_TEXT_MAX];

    log_begin();
    cr_assert_eq(watchdog_start(&w, why), 0);
    for (unsigned i = 0; i < 3; i++)
        cr_expect(notified(sock, 10000), "report %u", i);
    activity_turn(&device, clock_ns() - 3 * NS_PER_S);
    usleep(500000);
    while (notified(sock, 0)) /* those before it was stuck */
        ;
    cr_expect_not(notified(sock, 1000), "a stuck thread is no life");
    activity_rest(&device);
    cr_expect(notified(sock, 10000), "the thread goes on");
    watchdog_stop(&w);
    unlink(sa.sun_path);
    close(sock);
}

Test(watchdog, the_end_is_bounded)
{
    char why[ERROR_TEXT_MAX], line[512] = "", text[2048] = "";
    int out[2], status = 0;

    cr_assert_eq(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 2);
        activity_turn(&device, clock_ns() - 5 * NS_PER_S);
        activity_begin(&device, "DEREG_MR", 9, 12);
        if (watchdog_start(&w, why) != 0)
            _exit(99);
        watchdog_end_within(&w, 1);
        sleep(30); /* as a main thread that waits for the device's */
        _exit(98);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    while (fgets(line, sizeof(line), f))
        strncat(text, line, sizeof(text) - strlen(text) - 1);
    fclose(f);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), 1);
    cr_expect_not_null(strstr(text, "DEREG_MR of session 9, pid 12"), "%s", text);
    cr_expect_not_null(strstr(text, "exits now"), "%s", text);
}

/* Waits until the watchdog rests, or does not. */
static bool becomes(bool rests)
{
    for (unsigned i = 0; i < 1000; i++) {
        if ((atomic_load(&w.watch.state) == ACTIVITY_UNWATCHED) == rests)
            return true;
        usleep(10000);
    }
    return false;
}

Test(watchdog, it_rests_while_all_threads_wait)
{
    char why[ERROR_TEXT_MAX];

    log_begin();
    cr_assert_eq(watchdog_start(&w, why), 0);
    cr_assert(becomes(true));
    activity_wake(&device, clock_ns()); /* a turn that does not end */
    cr_expect(becomes(false));
    for (unsigned i = 0; i < 1000 && !watchdog_is_stuck(&device, clock_ns()); i++)
        usleep(10000);
    const char *text = "";
    for (unsigned i = 0; i < 1000 && !*text; i++) {
        usleep(10000);
        text = log_text();
    }
    cr_expect_not_null(strstr(text, "thread pumice0 has been stuck for"), "%s", text);
    activity_rest(&device);
    cr_assert(becomes(true), "no thread is stuck any more");
    cr_expect_not_null(strstr(log_text(), "thread pumice0 goes on"));
    watchdog_stop(&w);
}

/* Under a service manager, it also reports while it rests. */
Test(watchdog, a_rest_ends_in_time_for_the_next_report)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = listen_for_reports(&sa, "8000000"); /* us: a report at least every 4 seconds */
    char why[ERROR_TEXT_MAX];

    cr_assert_eq(watchdog_start(&w, why), 0);
    cr_assert(becomes(true));
    while (notified(sock, 0)) /* those before the rest */
        ;
    for (unsigned i = 0; i < 2; i++) {
        cr_expect(notified(sock, 60000), "report %u", i);
        usleep(100000);
        cr_expect_eq(atomic_load(&w.watch.state), ACTIVITY_UNWATCHED, "it rests again");
    }
    watchdog_stop(&w);
    unlink(sa.sun_path);
    close(sock);
}

Test(watchdog, it_does_not_rest_while_a_thread_works)
{
    char why[ERROR_TEXT_MAX];

    activity_turn(&main_thread, clock_ns());
    cr_assert_eq(watchdog_start(&w, why), 0);
    for (unsigned i = 0; i < 25; i++) {
        usleep(100000);
        activity_turn(&main_thread, clock_ns());
        cr_assert_neq(atomic_load(&w.watch.state), ACTIVITY_UNWATCHED);
    }
    watchdog_stop(&w);
}

/* The watchdog rests only after a second in which no thread went on. */
Test(watchdog, a_thread_that_goes_on_at_times_is_watched)
{
    char why[ERROR_TEXT_MAX];

    cr_assert_eq(watchdog_start(&w, why), 0);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t begin = clock_ns();

        activity_wake(&device, begin);
        activity_rest(&device);
        usleep(300000);
        bool rests = atomic_load(&w.watch.state) == ACTIVITY_UNWATCHED;
        cr_assert(!rests || clock_ns() - begin >= NS_PER_S, "it rests too early");
    }
    watchdog_stop(&w);
}

/* It also ends the daemon in time if it rested before. */
Test(watchdog, the_end_is_bounded_after_a_rest)
{
    char why[ERROR_TEXT_MAX];
    int status = 0;

    pid_t child = fork();
    if (child == 0) {
        if (watchdog_start(&w, why) != 0 || !becomes(true))
            _exit(99);
        watchdog_end_within(&w, 1);
        sleep(30);
        _exit(98);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), 1);
}

/* An orderly end within the time. */
Test(watchdog, it_stops_itself)
{
    char why[ERROR_TEXT_MAX];

    cr_assert_eq(watchdog_start(&w, why), 0);
    watchdog_end_within(&w, 1);
    watchdog_forget_devices(&w);
    watchdog_stop(&w);
    usleep(1500000);
}
