// SPDX-License-Identifier: BSD-2-Clause
/* The control socket that a service manager passes (daemon/server/systemd.h). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/server/listener.h"
#include "daemon/server/systemd.h"

static char dir[64], why[ERROR_TEXT_MAX];

static void start(void)
{
    strcpy(dir, "/tmp/pumice-service-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void end(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    cr_assert_eq(system(command), 0);
}

TestSuite(service, .init = start, .fini = end);

/* Descriptor 3 belongs to Criterion, so the test passes the socket to a child process. The child names the line of
 * the first check that failed. */
#define EXPECT(what)                                                                                                   \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            return __LINE__;                                                                                           \
    } while (0)

static void in_child(int (*run)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        int line = run();

        if (line)
            fprintf(stderr, "line %d: %s\n", line, why);
        _exit(line != 0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
}

/* Puts a socket of this type at descriptor 3, and sets the environment as a service manager does. */
static int pass(int type, bool listening, const char *fds, char path[108])
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    char pid[16];
    int fd = socket(AF_UNIX, type, 0);

    EXPECT(fd >= 0 && snprintf(path, 108, "%s/socket", dir) < 108);
    strcpy(sa.sun_path, path);
    EXPECT(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
    if (listening)
        EXPECT(listen(fd, 1) == 0);
    EXPECT(dup2(fd, 3) == 3);
    snprintf(pid, sizeof(pid), "%d", getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", fds, 1);
    return 0;
}

Test(service, none)
{
    char path[108];

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    cr_assert_eq(systemd_socket(path, why), -ENOENT);
    setenv("LISTEN_PID", "1", 1); /* inherited by mistake: meant for another process */
    setenv("LISTEN_FDS", "1", 1);
    cr_assert_eq(systemd_socket(path, why), -ENOENT);
    cr_assert_null(getenv("LISTEN_FDS"));
}

static int takes(void)
{
    struct settings o;
    struct listener l;
    struct stat st;
    char path[108];

    EXPECT(pass(SOCK_SEQPACKET, true, "1", path) == 0 && chmod(path, 0660) == 0);
    settings_init(&o);
    EXPECT(listener_open(&l, &o, why) == 0);
    EXPECT(l.fd == 3 && strcmp(l.path, path) == 0 && listener_owns_path(&l));
    EXPECT((fcntl(3, F_GETFL) & O_NONBLOCK) && (fcntl(3, F_GETFD) & FD_CLOEXEC));
    EXPECT(!getenv("LISTEN_PID"));
    listener_close(&l);
    EXPECT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0660); /* the socket file belongs to the service manager */
    return 0;
}

Test(service, the_listener_takes_the_socket_and_leaves_the_file)
{
    in_child(takes);
}

static int elsewhere(void)
{
    struct settings o;
    struct listener l;
    char path[108];

    EXPECT(pass(SOCK_SEQPACKET, true, "1", path) == 0);
    settings_init(&o);
    strcpy(o.socket, "/tmp/elsewhere.sock");
    EXPECT(listener_open(&l, &o, why) == -EINVAL && strstr(why, "/tmp/elsewhere.sock"));
    return 0;
}

Test(service, another_path_was_asked_for)
{
    in_child(elsewhere);
}

static int refused(int type, bool listening, const char *fds)
{
    char path[108];

    EXPECT(pass(type, listening, fds, path) == 0);
    EXPECT(systemd_socket(path, why) == -EINVAL && strstr(why, "SOCK_SEQPACKET"));
    return 0;
}

static int stream(void)
{
    return refused(SOCK_STREAM, true, "1");
}

static int silent(void)
{
    return refused(SOCK_SEQPACKET, false, "1");
}

static int two(void)
{
    return refused(SOCK_SEQPACKET, true, "2");
}

Test(service, stream_socket)
{
    in_child(stream);
}

Test(service, socket_that_does_not_listen)
{
    in_child(silent);
}

Test(service, two_sockets)
{
    in_child(two);
}
