// SPDX-License-Identifier: BSD-2-Clause
/* The memory of one client: how the daemon reads and writes it, and the writes that wait to be executed together.
 *
 * There are two ways to reach the memory:
 * - process_vm_readv and process_vm_writev respect page protections and name the process by its pid. The daemon uses
 *   them only for processes of its own user. Otherwise a client could make a privileged daemon write into a program
 *   that the client itself may not write to.
 * - The descriptor of /proc/self/mem was opened by the client with the client's rights. It stays bound to the
 *   client's memory even if the pid is reused. It ignores page protections.
 *
 * In both ways the daemon touches only ranges that the engine has checked against the client's own keys.
 *
 * The memory may never answer, because its pages come from somewhere else (copier.h). After the first copy that took too
 * long, the memory is stuck: all later copies fail, and the loop ends the session (session/stuck_memory.h). */
#ifndef PUMICE_DAEMON_CLIENT_MEM_CLIENT_MEM_H
#define PUMICE_DAEMON_CLIENT_MEM_CLIENT_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "daemon/client_mem/copier.h"
#include "pumice/abi.h"

#define CLIENT_MEM_IOVS COPIER_IOVS /* the most entries on each side of a process_vm call */
#define CLIENT_MEM_PAGE 4096u /* Linux has no smaller pages */
/* Set in a number of client memory: the region was registered for on-demand paging. On a NIC, it has no pinned pages. So
 * memory that is not there is an error. */
#define CLIENT_MEM_ON_DEMAND (1u << 31)
/* The other bits of the space of a mem_segment: the number of the client memory, and the number of the region in
 * shared_region.h, 0 if it is in none. */
#define CLIENT_MEM_REGION_SHIFT 16
#define CLIENT_MEM_NUMBER(space) ((space)&0xffffu)
#define CLIENT_MEM_REGION(space) (((space) & ~CLIENT_MEM_ON_DEMAND) >> CLIENT_MEM_REGION_SHIFT)

/* The way to reach the memory that the configuration asks for. */
enum memory_mode {
    MEMORY_AUTO, /* the first way that works */
    MEMORY_PROCESS_VM,
    MEMORY_PROC_MEM,
};

/* Descriptors of a client's files in /proc, which it opened with its own rights; -1: none. */
struct client_fds {
    int mem; /* /proc/self/mem, for PM_MEMORY_PROC_MEM */
    int maps; /* /proc/self/maps: shows how long a copy may last (served_memory.h) */
};
void client_fds_close(struct client_fds *fds, uid_t owner);

struct client_mem {
    /* Set by the owner before client_mem_init, which keeps them. */
    struct copier *copier; /* of the device; NULL: copies have no limit */
    unsigned limit_ms; /* of one system call that copies */
    unsigned lock_limit_ms; /* of such a call while it waits for the lock of the mappings; not less */
    uid_t owner; /* the user of the client, for fd_closer.h */

    uint32_t number; /* the number in struct mem_segment */
    enum pm_memory_path path;
    pid_t pid; /* for PM_MEMORY_PROCESS_VM */
    struct client_fds fds; /* owned */
    bool stuck; /* a copy took too long */
    int err; /* why the latest copy copied no byte: an errno */
    bool dirty; /* writes wait */
    unsigned nlocal, nremote;
    uint64_t waiting_bytes;
    TAILQ_ENTRY(client_mem) link; /* in the list of dirty ones */
    /* Sources of the waiting writes, in order. */
    struct iovec local[CLIENT_MEM_IOVS];
    /* The QP that each source belongs to; with CLIENT_MEM_ON_DEMAND, for an on-demand region. */
    uint32_t qpn[CLIENT_MEM_IOVS];
    /* Destinations of the waiting writes. Adjacent ones are merged. */
    struct iovec remote[CLIENT_MEM_IOVS];
};

/* Finds a way that works: reads the 8 bytes at probe_va, compares them with probe_value, and writes them back. The
 * struct takes ownership of the descriptors. same_user: the client runs with the daemon's uid. If no way works, path is
 * PM_MEMORY_NONE. All members but those that the owner sets get new values. */
void client_mem_init(struct client_mem *s, uint32_t number, pid_t pid, struct client_fds fds, bool same_user,
                     enum memory_mode mode, uint64_t probe_va, uint64_t probe_value);
void client_mem_fini(struct client_mem *s);

/* Copy between local[0 … nlocal) and remote[0 … nremote), which have the same total length and at most CLIENT_MEM_IOVS
 * entries each. They return the number of bytes copied before the first byte that could not be copied. If that is 0,
 * s->err says why. */
uint64_t client_mem_read(struct client_mem *s, const struct iovec *local, unsigned nlocal, const struct iovec *remote,
                         unsigned nremote);
uint64_t client_mem_write(struct client_mem *s, const struct iovec *local, unsigned nlocal, const struct iovec *remote,
                          unsigned nremote);

/* Has the process given up its memory, because it ended? */
bool client_mem_is_gone(struct client_mem *s);

/* Queues a write of len bytes from src to va. src must stay valid until client_mem_flush. False: there is no room;
 * flush first. */
bool client_mem_defer(struct client_mem *s, uint32_t qpn, uint64_t va, const uint8_t *src, size_t len);

struct client_write { /* a waiting write */
    uint64_t va;
    const uint8_t *src;
    size_t len;
    uint32_t owner; /* as client_mem.qpn */
};
/* Takes all waiting writes away, in their order. Returns their number. */
unsigned client_mem_take(struct client_mem *s, struct client_write out[CLIENT_MEM_IOVS]);

/* unmapped: the bytes of one page were dropped. Else the write failed as a whole. */
typedef void client_mem_failed(void *ctx, uint32_t qpn, bool unmapped);

/* Executes the waiting writes in order. Calls `failed` for each write that failed, or met memory that its program had
 * unmapped. The writes after it are still executed, because they may belong to other QPs. */
void client_mem_flush(struct client_mem *s, client_mem_failed *failed, void *ctx);

enum client_mem_result {
    CLIENT_MEM_DONE,
    CLIENT_MEM_UNMAPPED, /* some memory is not mapped: zeros stand in its place */
    CLIENT_MEM_FAILED, /* the process is gone, or its memory is stuck */
};
/* As client_mem_read, for all `bytes` bytes of the lists. The lists are used up. */
enum client_mem_result client_mem_read_all(struct client_mem *s, struct iovec *local, unsigned nlocal,
                                           struct iovec *remote, unsigned nremote, uint64_t bytes);

const char *client_mem_path_name(enum pm_memory_path path); /* "process_vm", "proc_mem", "none" */

#endif
