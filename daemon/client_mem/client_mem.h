// SPDX-License-Identifier: BSD-2-Clause
/* An address space of a client: how the daemon reads and writes its memory, and the writes that wait to be carried out
 * together.
 *
 * Two ways. process_vm_readv/writev respect page protections and name the process by its number; the daemon uses them
 * only for processes of its own user, so that a client can't make a privileged daemon write into a program that it
 * could not write to itself. The descriptor of /proc/self/mem was opened by the client with the client's rights and
 * stays bound to its memory, whatever becomes of the process number; it ignores page protections. Both touch only the
 * ranges that the engine has checked against the client's own keys. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_H
#define PUMICE_DAEMON_CLIENT_MEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "pumice/abi.h"

#define CLIENT_MEM_IOVS IOV_MAX /* of each side of a process_vm call */

/* Which ways to client memory may be used. */
enum memory_mode {
    MEMORY_AUTO, /* the first one that works */
    MEMORY_PROCESS_VM,
    MEMORY_PROC_MEM,
};

struct client_mem {
    uint32_t number; /* struct mem_segment's */
    enum pm_memory_path path;
    pid_t pid; /* PROCESS_VM */
    int fd; /* PROC_MEM; owned; -1: none */
    bool dirty; /* writes are waiting */
    unsigned nlocal, nremote;
    uint64_t waiting_bytes;
    TAILQ_ENTRY(client_mem) link; /* of the dirty ones */
    struct iovec local[CLIENT_MEM_IOVS]; /* sources of the waiting writes, in order … */
    uint32_t qpn[CLIENT_MEM_IOVS]; /* … and the QP each is for */
    struct iovec remote[CLIENT_MEM_IOVS]; /* their destinations; adjacent ones merged */
};

/* Finds out which way works: reads the 8 bytes at probe_va, compares them with probe_value and writes them back. fd (or
 * -1) becomes the space's. same_user: the client runs with the daemon's uid. If nothing works, path is PM_MEMORY_NONE.
 */
void client_mem_init(struct client_mem *s, uint32_t number, pid_t pid, int fd, bool same_user, enum memory_mode mode,
                     uint64_t probe_va, uint64_t probe_value);
void client_mem_fini(struct client_mem *s);

/* Copies between local[0 ... nlocal) and remote[0 ... nremote), which have the same total length; each at most
 * CLIENT_MEM_IOVS. Returns the bytes copied before the first that could not be. */
uint64_t client_mem_read(const struct client_mem *s, const struct iovec *local, unsigned nlocal,
                         const struct iovec *remote, unsigned nremote);
uint64_t client_mem_write(const struct client_mem *s, const struct iovec *local, unsigned nlocal,
                          const struct iovec *remote, unsigned nremote);

/* Remembers a write of len bytes at src, which must stay valid until client_mem_flush, to va. False: there is no room, flush
 * first. */
bool client_mem_defer(struct client_mem *s, uint32_t qpn, uint64_t va, const uint8_t *src, size_t len);

/* Carries the waiting writes out, in order. failed is called for each write that failed; those behind it
 * are carried out all the same, for other QPs may have made them. */
void client_mem_flush(struct client_mem *s, void (*failed)(void *ctx, uint32_t qpn), void *ctx);

const char *client_mem_path_name(enum pm_memory_path path); /* "process_vm", "proc_mem", "none" */

#endif
