// SPDX-License-Identifier: BSD-2-Clause
/* Failing calls: the page that the test shares with the daemon whose calls it makes fail.
 *
 * The daemon runs with the library of preload.c in LD_PRELOAD, and FAILING_PAGE names the file of the page. The test
 * maps the same file. Kinds, errors and numbers of calls are in the page, so one daemon serves many tries. */
#ifndef PUMICE_TESTS_FAILING_FAILING_H
#define PUMICE_TESTS_FAILING_FAILING_H

#include <stdatomic.h>
#include <stdint.h>

/* Calls that are counted together. */
/* clang-format off */
enum failing_kind {
    FAILING_NONE,
    FAILING_MALLOC,     /* malloc, calloc, realloc, aligned_alloc */
    FAILING_MMAP,
    FAILING_MEMFD,      /* memfd_create, ftruncate */
    FAILING_DESCRIPTOR, /* all calls that make a descriptor */
    FAILING_SOCKET,     /* socket, bind, setsockopt, accept4 */
    FAILING_SEND,       /* sendmsg, sendmmsg, sendto */
    FAILING_RECEIVE,    /* recvmsg, recvmmsg */
    FAILING_EPOLL_CTL,
    FAILING_WAIT,       /* epoll_wait, poll */
    FAILING_WRITE,      /* to pipes and files */
    FAILING_KINDS,
};
/* clang-format on */

struct failing_page {
    /* The kind that is counted now. The test stores it last. */
    _Atomic uint32_t kind;
    _Atomic int32_t error; /* errno of the calls that fail */
    _Atomic int64_t first; /* number of the first call that fails, from 1 on */
    _Atomic int64_t last; /* number of the last one */
    _Atomic int64_t calls; /* calls of the kind since the test stored 0 */
    _Atomic int64_t failed; /* calls that failed since then */
    _Atomic int64_t blocks; /* allocated blocks of memory in the daemon */
};

#endif
