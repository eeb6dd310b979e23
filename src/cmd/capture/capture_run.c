// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/capture/capture_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/capture/capture_filter.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/target_options.h"

#define PAUSE_MS 20 /* between polls while no packets come */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

/* A second signal has its default effect: it ends a capture that is blocked because the output
 * has no reader. */
static void catch_signals(void)
{
    struct sigaction once = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};

    stop = 0;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void capture_init(struct capture *c, const char *path)
{
    memset(c, 0, sizeof(*c));
    capture_filter_init(&c->request);
    c->ready_fd = -1;
    c->out.path = path;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static int open_reader(struct capture *c, const struct targets *t, struct capture_reader *reader)
{
    char path[SOCKET_PATH_MAX];
    int n, sum = 0;

    if (!(c->request.flags & (PM_CAPTURE_IN | PM_CAPTURE_OUT)))
        c->request.flags |= PM_CAPTURE_OUT | (t->n > 1 ? 0 : PM_CAPTURE_IN);
    c->out.lost = (c->request.flags & PM_CAPTURE_LOST) != 0;
    for (unsigned i = 0; i < t->n; i++) {
        targets_socket(t, i, path);
        n = capture_reader_add(reader, path, t->lab ? t->first + (int)i : -1, c->device, &c->request);
        if (n < 0)
            return -1;
        sum += n;
    }
    if (sum)
        return 0;
    say("there is no device '%s' (pumice status lists them)", c->device ? c->device : "");
    return -1;
}

/* Writes the packets that have come. Returns 1 if there were some, 0 if none, -1 at the end of the capture. */
static int drain(struct capture *c, struct capture_reader *reader)
{
    const struct pm_capture_record *r;
    unsigned source;
    int n = 0;

    capture_reader_poll(reader);
    while ((r = capture_reader_next(reader, &source)) != NULL) {
        int err = capture_output_add(&c->out, source, r);

        capture_reader_done(reader, source);
        if (err)
            return -1;
        n = 1;
        if (c->limit && c->out.packets >= c->limit)
            break;
    }
    if (n && capture_output_flush(&c->out) != 0)
        return -1;
    return c->limit && c->out.packets >= c->limit ? -1 : n;
}

static void summarize(const struct capture *c, const struct capture_reader *reader)
{
    uint64_t dropped = 0;

    for (unsigned i = 0; i < reader->n; i++)
        dropped += atomic_load(&reader->source[i].page->dropped);
    if (!c->quiet || dropped)
        say("%" PRIu64 " packets captured, %" PRIu64 " dropped%s", c->out.packets, dropped,
            dropped ? " (the output was too slow: a larger --buffer or --snaplen may help)" : "");
}

int capture_run(struct capture *c, const struct targets *t)
{
    struct capture_reader reader = {0};
    int n = 0, code = 1;

    catch_signals();
    if (open_reader(c, t, &reader) != 0 || capture_output_open(&c->out, &reader) != 0) {
        capture_reader_fini(&reader);
        return 1;
    }
    if (!c->quiet)
        say("capturing at %u device%s (%s%s); to end: Ctrl-C", reader.n, reader.n > 1 ? "s" : "", reader.source[0].name,
            reader.n > 1 ? " ..." : "");
    if (c->ready_fd >= 0 && write(c->ready_fd, "", 1) != 1)
        stop = 1;
    while (!stop && n >= 0) {
        n = drain(c, &reader);
        if (n == 0 && !stop && (!capture_reader_wait(&reader, PAUSE_MS) || capture_output_abandoned(&c->out)))
            break;
    }
    capture_reader_stop(&reader);
    if (n >= 0)
        n = drain(c, &reader);
    if (capture_output_close(&c->out) == 0 && (n >= 0 || c->limit))
        code = 0;
    summarize(c, &reader);
    capture_reader_fini(&reader);
    return code;
}

/* --- for a lab ---------------------------------------------------------------------------------------------------- */

static int capture_child(const char *lab, unsigned hosts, const char *path, bool lost, int ready_fd)
{
    struct targets t = {.n = hosts, .first = 0, .lab = lab};
    struct capture c;
    int null = open("/dev/null", O_RDWR);

    /* The capture gets its own session and so no signals of the terminal. It ends after the command. */
    setsid();
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    capture_init(&c, path);
    c.quiet = true;
    c.request.flags |= lost ? PM_CAPTURE_LOST : 0;
    c.ready_fd = ready_fd;
    return capture_run(&c, &t);
}

pid_t capture_start(const char *lab, unsigned hosts, const char *path, bool lost)
{
    pid_t self = getpid();
    int ends[2];
    char byte;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        say("can't create a pipe: %s", strerror(errno));
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != self)
            _exit(EXIT_OWN);
        close(ends[0]);
        _exit(capture_child(lab, hosts, path, lost, ends[1]));
    }
    close(ends[1]);
    if (pid < 0)
        say("can't fork: %s", strerror(errno));
    if (pid > 0 && read(ends[0], &byte, 1) != 1) { /* the child has printed the error */
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    close(ends[0]);
    return pid;
}

bool capture_stop(pid_t pid)
{
    int status;

    kill(pid, SIGTERM);
    if (waitpid(pid, &status, 0) != pid)
        return false; /* the process has already ended, and has printed the error */
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
