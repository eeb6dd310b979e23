// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/loop/device_setup.h"

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/gid_follow.h"
#include "daemon/loop/completion_delay.h"
#include "daemon/loop/decision_memory.h"
#include "daemon/loop/loop.h"
#include "daemon/loop/rx.h"
#include "daemon/monitor/path_check.h"
#include "daemon/monitor/peer_identity.h"
#include "daemon/monitor/ping.h"
#include "daemon/objects/qp/qp_ring.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/srq/tm_srq.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/threads/takeover.h"

/* --- setting up -------------------------------------------------------------------------------- */

/* Chooses the order of QP numbers and key tags. It differs from start to start, so that a packet for a QP of an earlier
 * daemon does not match a QP of this one, and no client can guess a number of another. With a seed in the settings, it
 * is the same at every start. */
static int pick_numbers(struct engine_config *c, const struct settings *s, unsigned index, char why[ERROR_TEXT_MAX])
{
    struct permute_secret *secret = &c->number_secret;

    if (s->has_seed) {
        secret->word[0] = s->seed;
        secret->word[1] = index + 1;
    } else if (getrandom(secret, sizeof(*secret), 0) != (ssize_t)sizeof(*secret)) { /* at start-up it may wait */
        int rc = -errno;
        snprintf(why, ERROR_TEXT_MAX, "the kernel gives no random numbers: %s", strerror(-rc));
        return rc;
    }
    return 0;
}

static void configure_engine(struct device *d)
{
    const struct settings *s = d->settings;
    struct engine_config *c = &d->config;

    engine_config_defaults(c);
    c->max_qp = d->limits.max_qp;
    c->max_mr = DEVICE_MAX_MR + DEVICE_MAX_MW;
    c->max_srq = DEVICE_MAX_SRQ;
    c->max_mcast = DEVICE_MAX_MCAST_GRP * DEVICE_MAX_MCAST_QP;
    c->active_mtu = d->active_mtu;
    c->ecn = s->ecn;
    c->e2e_credits = s->e2e_credits;
    c->selective = s->selective;
    c->reorder_mem = d->reorder_mem;
    if (s->window_pkts)
        c->window_pkts = s->window_pkts;
    c->max_resends = s->max_resends;
    device_config_timing(c, &(struct device_timing){s->ack_delay_us, s->min_timeout_us});
    c->crowd_timeout_ns = DEVICE_CROWD_TIMEOUT_NS;
    if (udp_is_open(&d->udp))
        c->peer_window_bytes = udp_window_bytes(&d->udp);
    for (unsigned i = 0; i < d->gids.n; i++)
        memcpy(c->gids[i], d->gids.entry[i].gid, sizeof(c->gids[i]));
    c->num_gids = ENGINE_MAX_GIDS;
}

/* --- work requests that the engine asks for ---------------------------------------------------- */

static void refill(void *device, void *client_qp)
{
    (void)device;
    client_qp_refill(client_qp);
}

static void refill_srq(void *device, void *client_srq)
{
    (void)device;
    client_srq_refill(client_srq);
}

static void list_ops(void *device, void *client_srq)
{
    (void)device;
    tm_srq_before_match(client_srq);
}

static bool withholds(void *device, const struct pkt *p)
{
    return device_rx_withholds(device, p);
}

int device_make_engine(struct device *d, char why[ERROR_TEXT_MAX])
{
    static const struct owner_ops owner_ops = {
        .refill = refill, .refill_srq = refill_srq, .list_ops = list_ops, .withholds = withholds};

    configure_engine(d);
    int rc = pick_numbers(&d->config, d->settings, d->index, why);
    if (rc)
        return rc;
    d->engine_mem_size = engine_size(&d->config);
    d->engine_mem = mmap(NULL, d->engine_mem_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (d->engine_mem == MAP_FAILED) {
        d->engine_mem = NULL;
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return -ENOMEM;
    }
    d->engine = engine_init(d->engine_mem, &d->config, &mem_backend_ops, &d->memory, &owner_ops, d);
    if (!d->engine) {
        snprintf(why, ERROR_TEXT_MAX, "the engine does not take these settings (window, MTU)");
        return -EINVAL;
    }
    return 0;
}

/* Memory for packets that come before an earlier one, bytes. */
static size_t reorder_bytes(const struct device *d)
{
    struct engine_config c;

    engine_config_defaults(&c);
    return d->settings->selective ? c.reorder_bytes : 0;
}

/* The buffers of packets begin so many bytes behind the beginning of a page. The kernel copies by "rep movsb" where the
 * processor reports that this is fast (fsrm). AMD's Zen 3 reports it, but needs four times as long if the destination is 1
 * to 31 bytes behind the source, counted within pages. Most buffers of programs begin near the beginning of a page.
 * Without the skew, so would the payload of a message's first packets. */
#define PACKETS_SKEW 1024u

static uint8_t *packet_buffer(struct device *d, size_t size)
{
    uint8_t *p = copier_alloc(&d->copier, PACKETS_SKEW + size);

    return p ? p + PACKETS_SKEW : NULL;
}

/* All packets are in the buffers of the copier, because their payload is copied from and to the memory of clients. Payload
 * from elsewhere is copied once more, and a system call writes fewer bytes of it. */
static int make_buffers(struct device *d)
{
    const size_t rx = (size_t)UDP_RX_MSGS * UDP_RX_BYTES, reorder = reorder_bytes(d), page = 4096;
    const size_t packets = PACKETS_SKEW + DEVICE_TX_BYTES + page + PACKETS_SKEW + rx + page;
    size_t late = d->settings->unkind & UNKIND_VISIBILITY ? LATE_WRITES_BYTES : 0;

    if (copier_init(&d->copier, packets + reorder + page + late + MEM_BACKEND_BUFFERS) != 0)
        return -ENOMEM;
    d->tx.buf = packet_buffer(d, DEVICE_TX_BYTES);
    d->udp.rx.buf = packet_buffer(d, rx);
    d->reorder_mem = reorder ? copier_alloc(&d->copier, reorder) : NULL;
    int rc = mem_backend_init(&d->memory, &d->copier);
    return d->tx.buf && d->udp.rx.buf && (d->reorder_mem || !reorder) ? rc : -ENOMEM;
}

static int be_unkind(struct device *d)
{
    unkind_init(&d->unkind, d->settings->unkind, d->settings->seed);
    if (unkind_is(&d->unkind, UNKIND_COMPLETIONS) && !(d->completion_delay = completion_delay_new(&d->unkind)))
        return -ENOMEM;
    bool late = unkind_is(&d->unkind, UNKIND_VISIBILITY);
    return mem_backend_be_unkind(&d->memory, &d->unkind, late ? copier_alloc(&d->copier, LATE_WRITES_BYTES) : NULL);
}

int device_init(struct device *d, const struct settings *s, unsigned index, char why[ERROR_TEXT_MAX])
{
    struct fault_spec spec;

    memset(d, 0, sizeof(*d));
    d->settings = s;
    d->index = index;
    profile_limits(s->profile, &d->limits);
    memcpy(d->name, s->device[index].name, sizeof(d->name));
    d->addr = s->device[index].addr[0];
    addr_to_gid(&d->addr, d->gid);
    udp_init(&d->udp, &d->addr, &d->io);
    d->udp.gso_mode = s->gso;
    d->udp.ecn = s->ecn;
    d->udp.cnp_dscp = s->cnp_dscp;
    d->udp.trouble = ping_trouble;
    d->udp.trouble_ctx = d;
    d->timer_fd = d->port_fd = -1;
    d->netdev.up = true;
    d->active_mtu = s->mtu ? s->mtu : IBV_MTU_1024;
    d->guid = netdev_guid(&d->netdev, &d->addr);
    d->pds.limit = d->limits.max_pd;
    d->xrcds.limit = d->limits.max_xrcd;
    LIST_INIT(&d->users);
    TAILQ_INIT(&d->sessions);
    TAILQ_INIT(&d->ending);
    TAILQ_INIT(&d->dirty_cqs);
    TAILQ_INIT(&d->groups);
    TAILQ_INIT(&d->held_cqs);
    d->held_due = NEVER;
    TAILQ_INIT(&d->backlog);
    TAILQ_INIT(&d->failed);
    TAILQ_INIT(&d->failed_srqs);
    TAILQ_INIT(&d->waiting_tm_srqs);
    if (make_buffers(d) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return -ENOMEM;
    }
    if (fault_parse(s->fault, &spec, why, ERROR_TEXT_MAX) != 0)
        return -EINVAL;
    if (decision_memory_open(d, why) != 0)
        return -EINVAL;
    decisions_filter(&d->decisions, &spec);
    uint64_t now = clock_ns();
    fault_init(&d->fault, &spec, s->seed, now, now);
    if (be_unkind(d) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return -ENOMEM;
    }
    device_set_peers(d, &s->peers);
    d->tx.cap = DEVICE_TX_BYTES;
    d->tx.gso = (struct gso_run){.bytes = GSO_MAX_BYTES, .pkts = GSO_MAX_SEGMENTS};
    d->loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    if (!d->loop) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory or files");
        return -ENOMEM;
    }
    control_turns_init(&d->control_turns, d->loop, s->control_share);
    mad_box_init(&d->mads);
    gid_follow_init(d);
    int rc = mailbox_init(&d->mailbox, d->loop);
    if (rc == 0)
        rc = slice_box_init(&d->slices, d->loop);
    if (rc == 0)
        rc = mad_box_start(&d->mads, d->loop);
    if (rc)
        snprintf(why, ERROR_TEXT_MAX, "cannot make an eventfd: %s", strerror(-rc));
    return rc;
}

static int find_interface(struct device *d, char *why)
{
    char text[ADDR_TEXT_MAX];

    if (netdev_find(&d->addr, &d->netdev) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "%s is not an address of this host: `ip address` lists the addresses",
                 addr_text(&d->addr, text));
        return -EADDRNOTAVAIL;
    }
    d->guid = netdev_guid(&d->netdev, &d->addr);
    uint8_t fits = netdev_path_mtu(d->netdev.mtu, d->addr.sa.sa_family == AF_INET6);
    if (fits == 0) {
        snprintf(why, ERROR_TEXT_MAX, "the MTU of %s, %u, is too small for RoCE", d->netdev.name, d->netdev.mtu);
        return -EMSGSIZE;
    }
    if (d->settings->mtu > fits)
        log_write(LOG_AREA, LOG_LEVEL_WARN,
                  "device %s: a path MTU of %u does not fit into the MTU of %s, %u; such packets get lost", d->name,
                  128u << d->settings->mtu, d->netdev.name, d->netdev.mtu);
    d->active_mtu = d->settings->mtu ? d->settings->mtu : fits;
    return 0;
}

int device_open(struct device *d, char why[ERROR_TEXT_MAX])
{
    char text[ADDR_TEXT_MAX];

    int rc = find_interface(d, why);
    d->udp.ifindex = d->netdev.index;
    if (rc == 0)
        rc = udp_open(&d->udp, d->settings->rcvbuf, why);
    if (rc == 0)
        rc = loop_init(d, why);
    if (rc == 0)
        rc = gid_follow_open(d, why);
    if (rc)
        return rc;
    log_info("device %s: %s on %s, path MTU %u, receive buffer %u KiB", d->name, addr_text(&d->addr, text),
             d->netdev.name, 128u << d->active_mtu, d->udp.rcvbuf / 1024);
    return device_make_engine(d, why);
}

void device_fini(struct device *d)
{
    assert(TAILQ_EMPTY(&d->sessions));
    path_check_fini(d);
    gid_follow_close(d);
    loop_fini(d);
    udp_close(&d->udp);
    if (d->loop) {
        mad_box_stop(&d->mads);
        mad_box_fini(&d->mads);
        slice_box_fini(&d->slices);
        mailbox_fini(&d->mailbox);
        control_turns_fini(&d->control_turns);
        ev_loop_destroy(d->loop);
    }
    delay_queue_fini(&d->delay_queue);
    completion_delay_free(d->completion_delay);
    decision_memory_close(d);
    mem_backend_fini(&d->memory);
    ping_fini(d);
    peer_identity_fini(d);
    if (d->engine_mem)
        munmap(d->engine_mem, d->engine_mem_size);
    copier_fini(&d->copier);
}

/* --- the thread -------------------------------------------------------------------------------- */

static void run(void *device)
{
    struct device *d = device;

    d->copier.thread = takeover_supported() ? d->thread : NULL;
    loop_run(d);
}

static void restrict_thread(void *device)
{
    (void)device;
    sandbox_enter_device();
}

static void enter_thread(void *device)
{
    const struct device *d = device;

    prctl(PR_SET_NAME, d->name);
    /* By default the scheduler may fire timers up to 50 us late. */
    prctl(PR_SET_TIMERSLACK, 1);
}

static bool copy_may_last(void *device, const char *waits_in)
{
    struct device *d = device;

    return copier_may_last(&d->copier, waits_in);
}

static bool copy_may_go_on(void *device, const char *waits_in, uint64_t slept_ns)
{
    struct device *d = device;

    if (atomic_load(&d->asked_to_stop) || !copier_may_go_on(&d->copier, waits_in, slept_ns))
        return false;
    activity_may_last(&d->activity, clock_ns() + NS_PER_S); /* the next question comes earlier */
    return true;
}

static bool prepare_takeover(void *device)
{
    struct device *d = device;

    return copier_prepare(&d->copier);
}

static void copy_is_lost(void *device)
{
    struct device *d = device;

    copier_replaced(&d->copier);
}

int device_start(struct device *d, int cpu)
{
    static const struct takeover_ops ops = {
        .run = run,
        .restrict_rights = restrict_thread,
        .enter = enter_thread,
        .may_last = copy_may_last,
        .may_go_on = copy_may_go_on,
        .prepare = prepare_takeover,
        .replaced = copy_is_lost,
    };
    sigset_t all, old;
    cpu_set_t set;

    pthread_attr_init(&d->thread_attr);
    CPU_ZERO(&set);
    if (cpu >= 0) {
        CPU_SET((unsigned)cpu, &set);
        pthread_attr_setaffinity_np(&d->thread_attr, sizeof(set), &set);
    }

    /* The main thread handles the signals. SIGBUS comes to the thread that touched a lost page
     * (session/segment_guard.h). If it were blocked there, it would end the process. */
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = takeover_start(&d->thread, &ops, d, &d->thread_attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        pthread_attr_destroy(&d->thread_attr);
    d->running = rc == 0;
    return rc;
}

struct stop_call {
    struct mailbox_call call; /* first */
    struct device *device;
};

static void set_stop(struct mailbox_call *call)
{
    ((struct stop_call *)(void *)call)->device->stop = true;
}

static void keep(struct mailbox_call *call)
{
    (void)call;
}

void device_stop(struct device *d)
{
    if (!d->running)
        return;
    struct stop_call stop = {{.run = set_stop, .drop = keep}, d};
    atomic_store(&d->asked_to_stop, true);
    mailbox_post(&d->mailbox, &stop.call);
    takeover_join(d->thread);
    d->thread = NULL;
    d->copier.thread = NULL;
    pthread_attr_destroy(&d->thread_attr);
    d->running = false;
}
