// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/replay/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/recording/recording.h"

#define SHOWN_BYTES 2000

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
    (void)sig;
    stopped = 1;
}

void trial_catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGCHLD, SIG_DFL); /* the parent may have set it to be ignored */
}

bool trial_stopped(void)
{
    return stopped;
}

void trial_dir(const char *output, enum trial_recording which, char out[PATH_MAX])
{
    static const char *const names[] = {[TRIAL_FIRST] = "first", [TRIAL_PLAN] = "plan", [TRIAL_SEEN] = "seen"};

    snprintf(out, PATH_MAX, "%.4000s/%s", output, names[which]);
}

/* Writes the path of a file with the output of a run: of the last one ("new"), or of the last that failed ("txt"). */
static void output_path(const char *output, const char *suffix, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.4000s/output.%s", output, suffix);
}

void trial_clean(const char *output)
{
    char path[PATH_MAX];

    for (unsigned i = 0; i < TRIAL_RECORDINGS; i++) {
        trial_dir(output, (enum trial_recording)i, path);
        recording_remove(path);
    }
    output_path(output, "new", path);
    unlink(path);
}

/* Becomes the run. */
static void run(const char *file, char **argv)
{
    int in = open("/dev/null", O_RDONLY), out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (out < 0)
        say("can't write %s: %s", file, strerror(errno));
    if (in < 0 || out < 0)
        _exit(EXIT_OWN);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execv("/proc/self/exe", argv);
    say("can't execute /proc/self/exe: %s", strerror(errno));
    _exit(EXIT_OWN);
}

/* Prints the end of the output of a run. */
static void show_output(const char *file)
{
    char text[SHOWN_BYTES];
    FILE *f = fopen(file, "r");

    if (f && fseek(f, -SHOWN_BYTES, SEEK_END) != 0)
        rewind(f);
    size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
    fwrite(text, 1, n, stderr);
    if (f)
        fclose(f);
}

int trial_run(const char *output, char **argv)
{
    char file[PATH_MAX];
    int status;

    if (stopped)
        return -1;
    output_path(output, "new", file);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run(file, argv);
    if (child < 0) {
        say("can't fork: %s", strerror(errno));
        return -1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (stopped)
            kill(child, SIGTERM); /* from the terminal it has got a signal itself */
    if (stopped)
        return -1;
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code >= EXIT_OWN && code <= EXIT_NOTFOUND) {
        say("pumice run failed:");
        show_output(file);
        return -1;
    }
    return code;
}

bool trial_keep_output(const char *output)
{
    char from[PATH_MAX], to[PATH_MAX];

    output_path(output, "new", from);
    output_path(output, "txt", to);
    if (rename(from, to) == 0)
        return true;
    say("can't write %s: %s", to, strerror(errno));
    return false;
}
