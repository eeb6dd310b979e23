// SPDX-License-Identifier: BSD-2-Clause
/* One process uses its device again after the daemon was killed and came back: at first by a daemon that somebody starts,
 * then by one that the library starts (PUMICE_AUTOSTART). Old contexts stay dead, and new ones carry traffic to another
 * host. Needs a daemon of its own: VT_DAEMON_PID. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "tests/verbs/ends.h"

static struct ibv_context *peer;

/* A SEND from the device to the other host, and one back. */
static bool carries_traffic(struct ibv_context *ctx)
{
    struct vt_end a, b;
    vt_end_open(&a, ctx);
    vt_end_open(&b, peer);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    need(vt_end_recv(&a, 1, 0, 64) == 0 && vt_end_recv(&b, 2, 0, 64) == 0);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    strcpy(a.buf + 1024, "there");
    strcpy(b.buf + 1024, "back");
    need(vt_end_post(&a, &wr, 1024, 6) == 0 && vt_end_post(&b, &wr, 1024, 5) == 0);
    bool right = vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.scq).status == IBV_WC_SUCCESS &&
                 vt_next(a.rcq).status == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS &&
                 !strcmp(a.buf, "back") && !strcmp(b.buf, "there");
    return vt_end_close(&a) && vt_end_close(&b) && right;
}

static bool is_dead(struct ibv_context *ctx)
{
    struct ibv_async_event event;
    struct ibv_port_attr port;
    if (ibv_get_async_event(ctx, &event) != 0)
        return false;
    ibv_ack_async_event(&event);
    return event.event_type == IBV_EVENT_DEVICE_FATAL && ibv_query_port(ctx, 1, &port) == EIO;
}

static int devices(void)
{
    int num = -1;
    struct ibv_device **list = ibv_get_device_list(&num);
    if (list)
        ibv_free_device_list(list);
    return num;
}

/* Kills a daemon that need not be a child, and waits until the kernel has closed all its sockets. */
static void kill_daemon(pid_t pid)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    need(end.fd >= 0 && kill(pid, SIGKILL) == 0 && poll(&end, 1, 20000) == 1);
    close(end.fd);
}

/* Starts a daemon with the settings of the environment, and waits until it is ready. */
static pid_t start_daemon(void)
{
    char path[512], byte;
    int ready[2];
    need(pipe(ready) == 0);
    snprintf(path, sizeof(path), "%s/bin/pumiced", getenv("VT_BUILD"));
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        unsetenv("LD_PRELOAD");
        dup2(ready[1], 3);
        execl(path, path, "--socket", getenv("PUMICE_SOCKET"), "--ready-fd", "3", NULL);
        _exit(127);
    }
    close(ready[1]);
    need(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return pid;
}

/* The process at the other end of the control socket. */
static pid_t daemon_pid(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);
    strncpy(to.sun_path, getenv("PUMICE_SOCKET"), sizeof(to.sun_path) - 1);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    need(sock >= 0 && connect(sock, (struct sockaddr *)&to, sizeof(to)) == 0 &&
         getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0);
    close(sock);
    return cred.pid;
}

int main(void)
{
    VT_OWN("the death of the daemon");
    const char *pid = getenv("VT_DAEMON_PID");
    if (!pid || !getenv("VT_BUILD")) {
        printf("skip - VT_DAEMON_PID or VT_BUILD is not set\n");
        return 77;
    }
    peer = vt_open_peer();
    need(peer);
    struct ibv_device **list = ibv_get_device_list(NULL); /* kept all the time */
    need(list && list[0]);
    struct ibv_context *ctx[3] = {ibv_open_device(list[0])};
    char address[INET_ADDRSTRLEN];
    need(ctx[0] && carries_traffic(ctx[0]));
    union ibv_gid gid = vt_gid(ctx[0]);
    need(inet_ntop(AF_INET, gid.raw + 12, address, sizeof(address)));
    setenv("PUMICED_ADDRESS", address, 1);

    kill_daemon((pid_t)atoi(pid));
    ok(is_dead(ctx[0]) && devices() == 0, "the daemon is killed: a fatal event, errors, and no devices");
    pid_t second = start_daemon();
    ok(devices() == 1, "another one comes: the process sees its device");
    ctx[1] = ibv_open_device(list[0]);
    ok(ctx[1] && carries_traffic(ctx[1]), "opens it again by the old list, and has traffic");

    need(kill(second, SIGKILL) == 0 && waitpid(second, NULL, 0) == second);
    ok(is_dead(ctx[1]) && devices() == 0, "that one is killed, too");
    setenv("PUMICE_AUTOSTART", "1", 1);
    ctx[2] = ibv_open_device(list[0]);
    pid_t third = ctx[2] ? daemon_pid() : 0;
    ok(third > 0 && waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD,
       "with PUMICE_AUTOSTART=1 opening the device starts a third one, which is no child");
    ok(third > 0 && carries_traffic(ctx[2]), "and there is traffic");
    ok(devices() == 1 && daemon_pid() == third, "another look starts none");
    for (int i = 0; i < 3; i++)
        ok(ctx[i] && ibv_close_device(ctx[i]) == 0, "a context is closed");
    ibv_free_device_list(list);
    if (third > 0)
        need(kill(third, SIGTERM) == 0);
    ok(ibv_close_device(peer) == 0, "the other device is closed");
    return vt_failed;
}
