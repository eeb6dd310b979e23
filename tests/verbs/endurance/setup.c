// SPDX-License-Identifier: BSD-2-Clause
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verbs/endurance/endurance.h"

void block_make(void)
{
    uint64_t at = 0;

    st.slot_size = (par.max_size + 63) & ~63u;
    if (st.slot_size < 64)
        st.slot_size = 64;
    st.msg_at = at, at += (uint64_t)par.depth * st.slot_size;
    st.target_at = at, at += (uint64_t)par.depth * st.slot_size;
    st.source_at = at, at += st.slot_size;
    st.atomic_at = at, at += ATOMIC_WORDS * 8;
    st.credit_at = at, at += (uint64_t)par.depth * CREDIT_BYTES;
    st.size = at;
    st.block = aligned_alloc(4096, (at + 4095) & ~4095ull);
    st.scratch = malloc(st.slot_size);
    if (st.block == NULL || st.scratch == NULL)
        die("memory");
    memset(st.block, 0xa5, at);
    memset(st.block + st.atomic_at, 0, ATOMIC_WORDS * 8);
    /* Byte i of the source depends on i alone, so that a READ may begin anywhere. */
    for (uint32_t i = 0; i < st.slot_size; i++)
        st.block[st.source_at + i] = (uint8_t)(mix(par.seed + i / 256) ^ i * 37u);
}

static void *async_main(void *arg)
{
    struct ibv_async_event ev;

    (void)arg;
    while (ibv_get_async_event(st.ctx, &ev) == 0) {
        printf("event %d %llu %s\n", (int)ev.event_type, (unsigned long long)now_ms(),
               ibv_event_type_str(ev.event_type));
        fflush(stdout);
        ibv_ack_async_event(&ev);
    }
    return NULL;
}

static void device_open(void)
{
    int num;
    struct ibv_device **list = ibv_get_device_list(&num);

    if (list == NULL || num == 0)
        die("no device");
    for (int i = 0; i < num && st.ctx == NULL; i++)
        if (opt.dev == NULL || strcmp(opt.dev, ibv_get_device_name(list[i])) == 0)
            st.ctx = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    if (st.ctx == NULL)
        die("open device");
}

void objects_create(void)
{
    pthread_t thread;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    bool binds = opt.host != NULL && (par.ops & 1u << OP_BIND);

    device_open();
    if (pthread_create(&thread, NULL, async_main, NULL) != 0)
        die("thread");
    pthread_detach(thread);
    if (opt.events && (st.channel = ibv_create_comp_channel(st.ctx)) == NULL)
        die("completion channel");
    if ((st.pd = ibv_alloc_pd(st.ctx)) == NULL)
        die("protection domain");
    if ((st.mr = ibv_reg_mr(st.pd, st.block, st.size, access | (binds ? IBV_ACCESS_MW_BIND : 0))) == NULL)
        die("memory region");
    if (binds && (st.mw = ibv_alloc_mw(st.pd, IBV_MW_TYPE_2)) == NULL)
        die("memory window (without them: -o with all operations but bind)");
    if ((st.cq = ibv_create_cq(st.ctx, (int)par.depth * 4, NULL, st.channel, 0)) == NULL)
        die("completion queue");
    if (opt.events && ibv_req_notify_cq(st.cq, 0) != 0)
        die("request notification");
    transport_create(access);
}

void objects_destroy(void)
{
    transport_destroy();
    if (st.mw && ibv_dealloc_mw(st.mw))
        die("destroy");
    if (ibv_destroy_cq(st.cq) || ibv_dereg_mr(st.mr) || ibv_dealloc_pd(st.pd) ||
        (st.channel && ibv_destroy_comp_channel(st.channel)))
        die("destroy");
    /* The context stays open: a thread sits in ibv_get_async_event. Process exit closes it. */
}
