// SPDX-License-Identifier: BSD-2-Clause
/* Channels of connection management in the children of a process. */
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "tests/verbs/device.h"
#include "tests/verbs/rdma_cm/fake.h"

/* Runs a function in a child. Returns its exit code. */
static int in_child(int (*function)(int), int fd)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(function(fd));
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int uses(int fd)
{
    struct rdma_ucm_event_resp event;
    uint32_t id = cm_create(fd, 42);
    if (!id || cm_notify(fd, id, CM_ESTABLISHED) || cm_get_event(fd, &event) || event.uid != 42)
        return 1;
    int own = open(CM_FILE, O_RDWR);
    return own >= 0 && cm_count(own) == 2 && close(own) == 0 && cm_count(fd) == 1 && close(fd) == 0 ? 0 : 2;
}

static int closes(int fd)
{
    return close(fd) == 0 && fcntl(fd, F_GETFD) == -1 ? 0 : 1;
}

static int executes(int fd)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", fd);
    execl("/proc/self/exe", "test_cm_fork", number, NULL);
    return 9;
}

/* As daemon(3) does it: the parent ends, and the child goes on. */
static int result[2];
static int ends(int unused)
{
    struct rdma_ucm_event_resp event;
    (void)unused;
    int fd = open(CM_FILE, O_RDWR | O_CLOEXEC);
    uint32_t id = cm_create(fd, 8);
    pid_t parent = getpid();
    if (fork() > 0)
        return 0;
    while (getppid() == parent)
        sched_yield();
    bool works = cm_notify(fd, id, CM_ESTABLISHED) == 0 && cm_get_event(fd, &event) == 0 && event.uid == 8;
    works = works && close(fd) == 0;
    (void)!write(result[1], works ? "y" : "n", 1);
    _exit(0);
}

static void forks(void)
{
    struct rdma_ucm_event_resp event;
    int fd = cm_open(0);
    uint32_t id = cm_create(fd, 1);
    ok(in_child(uses, fd) == 0, "a child uses the channel, and one of its own");
    ok(in_child(closes, fd) == 0, "a child closes the channel");
    ok(in_child(executes, fd) == 0, "the channel is closed on exec");
    ok(cm_count(fd) == 1 && cm_notify(fd, id, CM_ESTABLISHED) == 0 && cm_get_event(fd, &event) == 0 && event.uid == 1,
       "the parent's channel goes on");
    close(fd);
}

static void parent_ends(void)
{
    char works = 0;
    need(pipe(result) == 0);
    ok(in_child(ends, -1) == 0 && read(result[0], &works, 1) == 1 && works == 'y',
       "a child goes on with the channel of a parent that ends");
    close(result[0]);
    close(result[1]);
}

/* A child that closes the channel last ends it; the parent, which closed it before, does not. */
static void child_is_last(void)
{
    int fd = cm_open(0), keep = cm_open(0), go[2], status;
    char byte;
    need(pipe(go) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        (void)!read(go[0], &byte, 1);
        _exit(cm_create(fd, 1) ? 0 : 1);
    }
    close(fd);
    ok(cm_count(keep) == 2, "a channel that the parent closed lives in the child");
    close(go[1]);
    ok(waitpid(child, &status, 0) == child && status == 0 && cm_count(keep) == 1, "the child uses it, and ends it");
    close(go[0]);
    close(keep);
}

/* Between vfork and exec the memory is the parent's. */
static void vforks(void)
{
    int fd = cm_open(0), spare = open("/dev/null", O_RDWR), status = -1;
    struct stat st;
    pid_t child = vfork();
    if (child == 0) {
        int rc = close(fd);
        rc |= dup2(spare, fd) != fd;
        rc |= fcntl(fd, F_GETFD) < 0;
        rc |= write(fd, "x", 1) != 1;
        for (int i = 3; i < 64; i++)
            close(i);
        _exit(rc);
    }
    ok(waitpid(child, &status, 0) == child && status == 0, "a vfork child closes and replaces the channel");
    ok(cm_create(fd, 1) && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && cm_count(fd) == 1,
       "the parent's channel is as it was");
    posix_spawn_file_actions_t act;
    char *const argv[] = {"true", NULL};
    posix_spawn_file_actions_init(&act);
    posix_spawn_file_actions_addclose(&act, fd);
    ok(posix_spawnp(&child, "true", &act, NULL, argv, environ) == 0 && waitpid(child, NULL, 0) == child &&
           cm_count(fd) == 1,
       "so it is after posix_spawn");
    posix_spawn_file_actions_destroy(&act);
    close(fd);
    close(spare);
}

/* Children of a process whose other threads use channels all the time. */
static atomic_bool stop;
static void *busy(void *unused)
{
    (void)unused;
    int fd = open(CM_FILE, O_RDWR | O_CLOEXEC);
    uint32_t id = cm_create(fd, 1);
    while (!atomic_load(&stop))
        if (fd < 0 || cm_notify(fd, id, FAKE_GONE) || close(dup(fd)))
            return "failed";
    close(fd);
    return NULL;
}

static int creates(int fd)
{
    int own = open(CM_FILE, O_RDWR);
    return cm_create(fd, 1) && own >= 0 && cm_create(own, 1) ? 0 : 1;
}

static void forks_of_threads(void)
{
    pthread_t thread[2];
    void *failed;
    int fd = cm_open(0);
    bool all = true;
    for (int i = 0; i < 2; i++)
        need(pthread_create(&thread[i], NULL, busy, NULL) == 0);
    for (int i = 0; i < 50; i++)
        all &= in_child(creates, fd) == 0;
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        all &= pthread_join(thread[i], &failed) == 0 && !failed;
    ok(all, "children of a process with threads at work");
    close(fd);
}

int main(int argc, char **argv)
{
    VT_OWN("forks and the client library");
    if (argc == 2)
        return fcntl(atoi(argv[1]), F_GETFD) == -1 ? 0 : 1;
    fake_start(false);
    forks();
    parent_ends();
    child_is_last();
    vforks();
    forks_of_threads();
    return fake_end();
}
