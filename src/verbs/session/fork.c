// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/fork.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/verbs/base/cancel.h"
#include "src/verbs/session/session.h"

static const uint32_t no_page; /* the page before the first context is opened */
const volatile uint32_t *vb_fork_page = &no_page;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *page; /* vb_fork_page, writable */
static uint32_t generations; /* number of generations so far, of this process and its ancestors */

#define WATCHED 64
static _Atomic(struct vb_session *) watched[WATCHED];

/* Runs in the child. It is async-signal-safe, because the child may be a copy of a thread in the middle of any
 * function. */
static void in_child(void)
{
    for (int i = 0; i < WATCHED; i++) {
        struct vb_session *s = atomic_load(&watched[i]);
        int fd = s ? atomic_exchange(&s->fd, -1) : -1;
        if (fd >= 0)
            vb_close(fd);
        atomic_store(&watched[i], NULL);
    }
    /* Another thread of the parent may have held the lock. */
    pthread_mutex_init(&lock, NULL);
}

uint32_t vb_fork_generation(void)
{
    uint32_t g = 0;
    pthread_mutex_lock(&lock);
    if (!page) {
        void *p = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED && madvise(p, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) == 0)
            page = p;
        else if (p != MAP_FAILED)
            munmap(p, (size_t)sysconf(_SC_PAGESIZE));
        if (page) {
            vb_fork_page = page;
            pthread_atfork(NULL, NULL, in_child);
        }
    }
    if (page) {
        if (*page == 0)
            __atomic_store_n(page, ++generations, __ATOMIC_RELEASE);
        g = *page;
    }
    pthread_mutex_unlock(&lock);
    return g;
}

void vb_fork_watch(struct vb_session *s)
{
    for (int i = 0; i < WATCHED; i++) {
        struct vb_session *empty = NULL;
        if (atomic_compare_exchange_strong(&watched[i], &empty, s))
            return;
    }
}

void vb_fork_unwatch(struct vb_session *s)
{
    for (int i = 0; i < WATCHED; i++) {
        struct vb_session *mine = s;
        if (atomic_compare_exchange_strong(&watched[i], &mine, NULL))
            return;
    }
}

bool vb_fork_complain(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&said))
        fprintf(stderr,
                "pumice: process %d uses an RDMA context that its parent opened before fork(). The child can't use "
                "it. Open the device again in the child.\n",
                (int)getpid());
    return false;
}
