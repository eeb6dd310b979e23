// SPDX-License-Identifier: BSD-2-Clause
/* src/cmd: a request to a daemon and its reply, over a control connection. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/common/control.h"

#define REFUSALS 500

/* Refuses a request that it leaves unread, and ends the connection. A daemon does this with descriptors that it could not
 * close. */
static void refuse_unread(int sock)
{
    static const char why[] = "too many";
    struct {
        struct pm_reply head;
        char why[sizeof(why)];
    } reply = {.head = {.status = -EBUSY, .len = sizeof(why)}};
    char c;

    memcpy(reply.why, why, sizeof(why));
    while (recv(sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        ;
    (void)!send(sock, &reply, sizeof(reply.head) + sizeof(why), MSG_NOSIGNAL);
    _exit(0);
}

/* The kernel reports the unread request (ECONNRESET) before it gives the reply, if the daemon was faster. So it takes many
 * calls to see both orders. */
Test(control, the_reason_of_a_daemon_that_refuses_and_leaves_arrives)
{
    for (int i = 0; i < REFUSALS; i++) {
        struct control_call call = {.op = PM_OP_LIST};
        int pair[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        pid_t daemon = fork();
        cr_assert_geq(daemon, 0);
        if (daemon == 0) {
            close(pair[0]);
            refuse_unread(pair[1]);
        }
        close(pair[1]);
        int rc = control_call(pair[0], &call);
        close(pair[0]);
        waitpid(daemon, NULL, 0);
        cr_assert_eq(rc, -EBUSY, "call %d: %s", i, strerror(-rc));
        cr_assert_str_eq(call.why, "too many");
    }
}

Test(control, a_connection_that_ends_without_a_reply_is_an_error)
{
    struct control_call call = {.op = PM_OP_LIST};
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    cr_assert_eq(shutdown(pair[1], SHUT_WR), 0);
    cr_assert_eq(control_call(pair[0], &call), -ECONNRESET);
    close(pair[0]);
    close(pair[1]);
}
