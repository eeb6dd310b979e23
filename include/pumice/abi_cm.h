// SPDX-License-Identifier: BSD-2-Clause
/* The part of the contract about connection management. The client library offers /dev/infiniband/rdma_cm to librdmacm.
 * A descriptor of that device is a *channel* of the daemon. The commands that librdmacm writes to the descriptor are
 * structs of <rdma/rdma_user_cm.h>. The library carries them to the daemon as they are, and the daemon answers with the
 * bytes that the kernel would write to the address in the command.
 *
 * All operations are sent on a connection that begins with PM_OP_CM_OPEN. A process has one such connection, which its
 * channels share. It stays a connection of this kind until it is closed.
 *
 * A channel exists as long as its pipe has a reader: any process that has the descriptor, or a duplicate of it. So the
 * channel survives a parent that exits after fork, and ends with exec or death, as a file of the kernel does. For that,
 * the daemon closes its copy of the read end after it has sent it. The write end then reports POLLERR when the last
 * reader is gone. With the channel, all its IDs end, and their peers are told.
 *
 * A program waits for events with poll(2), or blocks in a GET_EVENT command. The descriptor that it has is an epoll
 * instance of the library, which contains the read end of a pipe. So it is readable (POLLIN) when the pipe has data, and
 * when the pipe has ended. The daemon writes one byte for each event that waits in the channel. The client takes one byte
 * (read, which blocks unless the descriptor has O_NONBLOCK), and then sends GET_EVENT. If the event is gone meanwhile,
 * because its ID was destroyed, the reply is -ENODATA and the client takes the next byte. After any other error the event
 * still waits, and the daemon writes its byte again. When the daemon dies, the pipe ends. The library then makes the
 * events itself that say so, and silences the descriptor after the last one. */
#ifndef PUMICE_ABI_CM_H
#define PUMICE_ABI_CM_H

#include <stdint.h>

#define PM_CM_ABI_VERSION 4 /* what /sys/class/misc/rdma_cm/abi_version holds: RDMA_USER_CM_ABI_VERSION */

/* PM_OP_CM_OPEN. -EPROTO: another abi_version. rep: none */
struct pm_cm_open_req {
    uint32_t abi_version; /* PM_ABI_VERSION */
    uint32_t reserved;
};
/* PM_OP_CM_CREATE_CHANNEL. rep: fd[0] the read end of the pipe */
struct pm_cm_create_channel_rep {
    uint64_t channel; /* a number that can't be guessed */
};
/* PM_OP_CM_HOLD_CHANNEL: this connection uses the channel, too. A child sends it after fork, and has inherited the
 * descriptor. rep: none. -ENOENT: the user has no such channel.
 * PM_OP_CM_DROP_CHANNEL: this process has closed its last descriptor of the channel, and uses it no longer. If the pipe
 * has no other reader, the channel ends before the reply. So a port is free when close(2) returns. rep: none */
struct pm_cm_channel_req {
    uint64_t channel;
};
/* PM_OP_CM_COMMAND: struct pm_cm_command_req, then in bytes of the command's struct, then extra bytes:
 *     SET_OPTION   the value of the option, in place of the address in the struct
 *     MIGRATE_ID   uint64_t: the channel of the descriptor in the struct
 * rep: what the kernel writes to the `response` address of the struct, at most `out` bytes. An error is that of the
 * kernel's write(2). */
struct pm_cm_command_req {
    uint64_t channel;
    uint32_t cmd; /* RDMA_USER_CM_CMD_… */
    uint16_t in, out; /* as in struct rdma_ucm_cmd_hdr */
    uint16_t extra;
    uint16_t reserved[3];
};
#define PM_CM_IN_MAX 1024u /* bytes of `in` and of `extra` */
#define PM_CM_OUT_MAX 2048u

#endif
