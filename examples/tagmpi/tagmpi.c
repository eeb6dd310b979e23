// SPDX-License-Identifier: BSD-2-Clause
/* The layer itself: its functions, and the handling of all arrivals. Begin to read at tagmpi_irecv and
 * on_unexpected. They are the two halves of matching. */
#include "examples/tagmpi/tagmpi.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "examples/tagmpi/device.h"
#include "examples/tagmpi/match.h"
#include "examples/tagmpi/offload.h"

enum { BATCH = 32, BARRIER_COMM = TAGMPI_MAX_COMM + 1 };

struct tagmpi {
    const struct boot *boot;
    bool offload;
    struct device device;
    struct offload list; /* used if the offload is on */
    struct request_list posted; /* receives that nothing has matched yet, in order */
    /* The first posted receive from which on none is in the device's list; NULL: all are. */
    struct tagmpi_request *unlisted;
    struct unexpected_list unexpected; /* messages that no receive has matched yet, in order */
    struct request_list fetch[BOOT_MAX_RANKS]; /* matched rendezvous whose data software has to fetch, by sender */
    /* Sends whose FIN has not come, or NULL; the index is in the header of the message. */
    struct tagmpi_request **rendezvous;
    uint32_t rendezvous_count; /* size of that array */
    uint32_t rendezvous_next; /* index at which the search for a NULL begins */
    struct tagmpi_counts counts;
};

/* --- receives: from posted to done ---------------------------------------- */

static void append_posted(struct tagmpi *t, struct tagmpi_request *r)
{
    TAILQ_INSERT_TAIL(&t->posted, r, link);
    if (t->offload && !t->unlisted && !offload_add(&t->list, r))
        t->unlisted = r;
}

/* Adds waiting receives to the device's list, in order, after entries have become free. */
static void list_waiting(struct tagmpi *t)
{
    while (t->unlisted && offload_add(&t->list, t->unlisted))
        t->unlisted = TAILQ_NEXT(t->unlisted, link);
}

/* Notes that a message has matched this receive. */
static void matched(struct tagmpi *t, struct tagmpi_request *r, uint64_t tag)
{
    if (t->unlisted == r)
        t->unlisted = TAILQ_NEXT(r, link);
    TAILQ_REMOVE(&t->posted, r, link);
    r->status.source = (int)tag_source(tag);
    r->status.tag = tag_tag(tag);
}

static void complete(struct tagmpi_request *r, size_t length)
{
    r->status.length = length;
    r->done = true;
}

static void check_length(const struct tagmpi *t, const struct tagmpi_request *r, size_t length)
{
    if (length > r->capacity)
        fatal(t->boot->rank, "a message of %zu bytes, tag %d from rank %d, is longer than the %zu of its receive",
              length, r->status.tag, r->status.source, r->capacity);
}

/* --- rendezvous in software: READ, then FIN ------------------------------- */

static void send_fin(struct tagmpi *t, struct tagmpi_request *r, unsigned peer, void *at, unsigned slot)
{
    uint8_t *p = at;

    r->tmh.opcode = IBV_TMH_FIN; /* the rest is as it came: the sender finds its request by app_ctx */
    memcpy(p, &r->tmh, sizeof(r->tmh));
    memcpy(p + sizeof(r->tmh), &r->rvh, sizeof(r->rvh));
    device_send(&t->device, peer, slot, sizeof(r->tmh) + sizeof(r->rvh), IBV_SEND_FENCE);
}

/* Starts the READs of matched rendezvous, as long as there is room. Posts each FIN right behind its READ. The fence
 * delays the FIN until the data are here. */
static void start_fetches(struct tagmpi *t, unsigned peer)
{
    struct tagmpi_request *r;
    unsigned slot;
    void *at;

    while ((r = TAILQ_FIRST(&t->fetch[peer])) != NULL) {
        struct ibv_sge to = {(uintptr_t)r->buf, be32toh(r->rvh.len), r->lkey};
        if (t->device.link[peer].room < 2 || (at = device_send_slot(&t->device, peer, &slot)) == NULL)
            return;
        TAILQ_REMOVE(&t->fetch[peer], r, link);
        device_read(&t->device, peer, &to, be64toh(r->rvh.va), be32toh(r->rvh.rkey), (uintptr_t)r);
        send_fin(t, r, peer, at, slot);
    }
}

static void fetch(struct tagmpi *t, struct tagmpi_request *r, const struct ibv_tmh *tmh, const struct ibv_rvh *rvh)
{
    unsigned peer = (unsigned)r->status.source;

    check_length(t, r, be32toh(rvh->len));
    r->tmh = *tmh;
    r->rvh = *rvh;
    TAILQ_INSERT_TAIL(&t->fetch[peer], r, link);
    start_fetches(t, peer);
}

/* --- what arrives --------------------------------------------------------- */

static void deliver(struct tagmpi *t, struct tagmpi_request *r, const struct ibv_tmh *tmh, const struct ibv_rvh *rvh,
                    const void *data, size_t length)
{
    if (tmh->opcode == IBV_TMH_RNDV) {
        fetch(t, r, tmh, rvh);
        return;
    }
    check_length(t, r, length);
    if (length > 0)
        memcpy(r->buf, data, length);
    complete(r, length);
}

/* Keeps a message until its receive is posted. */
static void keep(struct tagmpi *t, uint64_t tag, const struct ibv_tmh *tmh, const struct ibv_rvh *rvh, const void *data,
                 uint32_t length)
{
    bool eager = tmh->opcode == IBV_TMH_EAGER;
    struct unexpected *u = malloc(sizeof(*u) + (eager ? length : 0));

    if (!u)
        fatal(t->boot->rank, "no memory for an unexpected message");
    u->tag = tag;
    u->tmh = *tmh;
    u->rvh = *rvh;
    u->length = length;
    if (eager)
        memcpy(u->data, data, length);
    TAILQ_INSERT_TAIL(&t->unexpected, u, link);
}

/* Handles a message that the device did not match. The program may have posted its receive while the message was
 * under way. */
static void on_unexpected(struct tagmpi *t, const uint8_t *message, uint32_t size)
{
    struct ibv_tmh tmh;
    struct ibv_rvh rvh = {0};

    memcpy(&tmh, message, sizeof(tmh));
    if (tmh.opcode == IBV_TMH_RNDV)
        memcpy(&rvh, message + sizeof(tmh), sizeof(rvh));
    uint64_t tag = be64toh(tmh.tag);
    uint32_t length = tmh.opcode == IBV_TMH_RNDV ? be32toh(rvh.len) : size - (uint32_t)sizeof(tmh);
    const uint8_t *data = message + sizeof(tmh);
    struct tagmpi_request *r = match_posted(&t->posted, tag);
    if (r) {
        t->counts.software_arriving++;
        matched(t, r, tag);
        if (r->listed)
            offload_del(&t->list, r);
        deliver(t, r, &tmh, &rvh, data, length);
    } else {
        keep(t, tag, &tmh, &rvh, data, length);
    }
    offload_count(&t->list);
}

/* Handles a FIN: the receiver of a rendezvous has the data. */
static void on_fin(struct tagmpi *t, const void *message)
{
    struct ibv_tmh tmh;

    memcpy(&tmh, message, sizeof(tmh));
    uint32_t id = be32toh(tmh.app_ctx);
    if (tmh.opcode != IBV_TMH_FIN || id >= t->rendezvous_count || !t->rendezvous[id])
        fatal(t->boot->rank, "a FIN for a send that does not exist");
    t->rendezvous[id]->done = true;
    t->rendezvous[id] = NULL;
}

/* Handles a match: the device has matched a message, or has all its data, or both. */
static void on_match(struct tagmpi *t, const struct arrival *a)
{
    struct tagmpi_request *r = (struct tagmpi_request *)(uintptr_t)a->wr_id;

    if (a->flags & IBV_WC_TM_MATCH)
        matched(t, r, a->tag);
    if (!(a->flags & IBV_WC_TM_DATA_VALID))
        return;
    if (a->length > TAGMPI_EAGER_MAX)
        t->counts.device_rendezvous++;
    else
        t->counts.device_eager++;
    r->listed = false;
    offload_release(&t->list);
    complete(r, a->length);
}

/* Handles a whole message in one of our slots. */
static void on_message(struct tagmpi *t, const struct arrival *a)
{
    const uint8_t *message = device_slot(&t->device, a->wr_id);

    if (message[0] == IBV_TMH_FIN)
        on_fin(t, message);
    else if (message[0] == IBV_TMH_EAGER || message[0] == IBV_TMH_RNDV)
        on_unexpected(t, message, a->length);
    else
        fatal(t->boot->rank, "a message that is not ours, operation %u", message[0]);
    device_repost(&t->device, a->wr_id);
}

static void on_arrival(struct tagmpi *t, const struct arrival *a)
{
    if (a->flags & IBV_WC_TM_SYNC_REQ)
        t->list.asked = true;
    switch (a->opcode) {
    case IBV_WC_TM_ADD:
    case IBV_WC_TM_DEL:
    case IBV_WC_TM_SYNC:
        offload_finished(&t->list, a);
        break;
    case IBV_WC_TM_RECV: /* a match, or an unexpected message */
        if (a->flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID))
            on_match(t, a);
        else
            on_message(t, a);
        break;
    default: /* IBV_WC_TM_NO_TAG: a FIN. IBV_WC_RECV: the offload is off */
        on_message(t, a);
    }
}

/* Handles a completion of a tx: a request of ours is done, or a FIN of a device has come. */
static void on_sent(struct tagmpi *t, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS)
        fatal(t->boot->rank, "QP 0x%x: send: %s (vendor error 0x%x)", wc->qp_num, ibv_wc_status_str(wc->status),
              wc->vendor_err);
    if (wc->opcode == IBV_WC_SEND) {
        device_sent(&t->device, wc->wr_id);
    } else if (wc->opcode == IBV_WC_RDMA_READ) {
        struct tagmpi_request *r = (struct tagmpi_request *)(uintptr_t)wc->wr_id;
        t->device.link[r->status.source].room++;
        complete(r, be32toh(r->rvh.len));
    } else {
        on_fin(t, device_fin(&t->device, wc->wr_id));
        device_repost_fin(&t->device, wc->wr_id);
    }
}

void tagmpi_progress(struct tagmpi *t)
{
    struct arrival a;
    struct ibv_wc wc[BATCH];
    int n;

    for (n = 0; n < BATCH && device_poll(&t->device, &a); n++)
        on_arrival(t, &a);
    if (t->offload) {
        list_waiting(t);
        if (n < BATCH) /* otherwise there are more arrivals, and a report would soon be out of date */
            offload_sync(&t->list);
    }
    n = ibv_poll_cq(t->device.tx_cq, BATCH, wc);
    for (int i = 0; i < n; i++)
        on_sent(t, &wc[i]);
    for (unsigned i = 0; i < t->boot->ranks; i++)
        start_fetches(t, i);
}

/* --- send and receive ----------------------------------------------------- */

static struct tagmpi_request *new_request(const struct tagmpi *t)
{
    struct tagmpi_request *r = calloc(1, sizeof(*r));

    if (!r)
        fatal(t->boot->rank, "no memory for a request");
    return r;
}

/* Waits for a slot to send from. */
static uint8_t *wait_for_slot(struct tagmpi *t, unsigned peer, unsigned *slot)
{
    uint8_t *at;

    while ((at = device_send_slot(&t->device, peer, slot)) == NULL)
        tagmpi_progress(t);
    return at;
}

static void grow_rendezvous(struct tagmpi *t)
{
    uint32_t count = t->rendezvous_count;

    t->rendezvous_count = count ? 2 * count : 64;
    t->rendezvous = realloc(t->rendezvous, t->rendezvous_count * sizeof(struct tagmpi_request *));
    if (!t->rendezvous)
        fatal(t->boot->rank, "no memory for a request");
    memset(t->rendezvous + count, 0, (t->rendezvous_count - count) * sizeof(struct tagmpi_request *));
    t->rendezvous_next = count;
}

/* Remembers a send until its FIN comes, and returns the number that the FIN will have. Numbers are used in turn, so
 * that a reader of a capture sees which FIN belongs to which request. */
static uint32_t remember(struct tagmpi *t, struct tagmpi_request *r)
{
    for (uint32_t i = 0; i < t->rendezvous_count; i++) {
        uint32_t id = (t->rendezvous_next + i) % t->rendezvous_count;
        if (t->rendezvous[id])
            continue;
        t->rendezvous[id] = r;
        t->rendezvous_next = id + 1;
        return id;
    }
    grow_rendezvous(t);
    return remember(t, r);
}

static void send_rendezvous(struct tagmpi *t, struct tagmpi_request *r, const void *buf, size_t length, unsigned dest,
                            struct ibv_tmh *tmh)
{
    const struct ibv_mr *mr = device_region(&t->device, buf, length);
    struct ibv_rvh rvh = {htobe64((uintptr_t)buf), htobe32(mr->rkey), htobe32((uint32_t)length)};
    unsigned slot;

    if (length > UINT32_MAX)
        fatal(t->boot->rank, "a message of %zu bytes is too long", length);
    tmh->opcode = IBV_TMH_RNDV;
    tmh->app_ctx = htobe32(remember(t, r));
    uint8_t *at = wait_for_slot(t, dest, &slot);
    memcpy(at, tmh, sizeof(*tmh));
    memcpy(at + sizeof(*tmh), &rvh, sizeof(rvh));
    device_send(&t->device, dest, slot, sizeof(*tmh) + sizeof(rvh), 0);
}

struct tagmpi_request *tagmpi_isend(struct tagmpi *t, const void *buf, size_t length, unsigned dest, int tag,
                                    unsigned comm)
{
    struct ibv_tmh tmh = {.opcode = IBV_TMH_EAGER, .tag = htobe64(tag_pack(comm, t->boot->rank, (uint32_t)tag))};
    struct tagmpi_request *r = new_request(t);
    unsigned slot;

    if (dest >= t->boot->ranks || tag < 0 || comm > BARRIER_COMM)
        fatal(t->boot->rank, "send: no rank %u, tag %d or communicator %u", dest, tag, comm);
    if (length > TAGMPI_EAGER_MAX) {
        send_rendezvous(t, r, buf, length, dest, &tmh);
        return r;
    }
    uint8_t *at = wait_for_slot(t, dest, &slot);
    memcpy(at, &tmh, sizeof(tmh));
    if (length > 0)
        memcpy(at + sizeof(tmh), buf, length);
    device_send(&t->device, dest, slot, (uint32_t)(sizeof(tmh) + length), 0);
    r->done = true; /* the slot has a copy */
    return r;
}

struct tagmpi_request *tagmpi_irecv(struct tagmpi *t, void *buf, size_t capacity, int source, int tag, unsigned comm)
{
    const struct ibv_mr *mr = device_region(&t->device, buf, capacity);
    struct tagmpi_request *r = new_request(t);

    if (source >= (int)t->boot->ranks || capacity > UINT32_MAX || comm > BARRIER_COMM)
        fatal(t->boot->rank, "receive: no rank %d, communicator %u, or more than 4 GiB", source, comm);
    r->receives = true;
    r->buf = buf;
    r->capacity = capacity;
    r->lkey = mr ? mr->lkey : 0;
    r->pattern = tag_pattern(comm, source, tag);
    struct unexpected *u = match_unexpected(&t->unexpected, &r->pattern);
    if (!u) {
        append_posted(t, r);
        return r;
    }
    t->counts.software_waiting++;
    TAILQ_REMOVE(&t->unexpected, u, link);
    r->status.source = (int)tag_source(u->tag);
    r->status.tag = tag_tag(u->tag);
    deliver(t, r, &u->tmh, &u->rvh, u->data, u->length);
    free(u);
    return r;
}

bool tagmpi_iprobe(struct tagmpi *t, int source, int tag, unsigned comm, struct tagmpi_status *status)
{
    struct pattern p = tag_pattern(comm, source, tag);

    tagmpi_progress(t);
    const struct unexpected *u = match_unexpected(&t->unexpected, &p);
    if (u && status)
        *status = (struct tagmpi_status){(int)tag_source(u->tag), tag_tag(u->tag), u->length};
    return u != NULL;
}

void tagmpi_probe(struct tagmpi *t, int source, int tag, unsigned comm, struct tagmpi_status *status)
{
    while (!tagmpi_iprobe(t, source, tag, comm, status))
        continue;
}

bool tagmpi_done(const struct tagmpi_request *r)
{
    return r->done;
}

bool tagmpi_test(struct tagmpi *t, struct tagmpi_request *r, struct tagmpi_status *status)
{
    if (!r->done)
        tagmpi_progress(t);
    if (!r->done)
        return false;
    if (r->receives && status)
        *status = r->status;
    free(r);
    return true;
}

void tagmpi_wait(struct tagmpi *t, struct tagmpi_request *r, struct tagmpi_status *status)
{
    while (!tagmpi_test(t, r, status))
        continue;
}

void tagmpi_send(struct tagmpi *t, const void *buf, size_t length, unsigned dest, int tag, unsigned comm)
{
    tagmpi_wait(t, tagmpi_isend(t, buf, length, dest, tag, comm), NULL);
}

void tagmpi_recv(struct tagmpi *t, void *buf, size_t capacity, int source, int tag, unsigned comm,
                 struct tagmpi_status *s)
{
    tagmpi_wait(t, tagmpi_irecv(t, buf, capacity, source, tag, comm), s);
}

/* In round k, every rank sends to the rank 2^k after it, and waits for the rank 2^k before it. */
void tagmpi_barrier(struct tagmpi *t)
{
    unsigned n = t->boot->ranks, me = t->boot->rank;
    int round = 0;

    for (unsigned step = 1; step < n; step *= 2, round++) {
        struct tagmpi_request *r = tagmpi_irecv(t, NULL, 0, (int)((me + n - step) % n), round, BARRIER_COMM);
        tagmpi_send(t, NULL, 0, (me + step) % n, round, BARRIER_COMM);
        tagmpi_wait(t, r, NULL);
    }
}

/* --- begin and end -------------------------------------------------------- */

struct tagmpi *tagmpi_open(const struct boot *b, bool offload)
{
    struct tagmpi *t = calloc(1, sizeof(*t));

    if (!t)
        fatal(b->rank, "no memory");
    t->boot = b;
    t->offload = offload;
    TAILQ_INIT(&t->posted);
    TAILQ_INIT(&t->unexpected);
    for (unsigned i = 0; i < b->ranks; i++)
        TAILQ_INIT(&t->fetch[i]);
    device_open(&t->device, b, offload);
    offload_init(&t->list, &t->device);
    return t;
}

void tagmpi_close(struct tagmpi *t)
{
    tagmpi_barrier(t);
    while (t->device.free_slots < SEND_SLOTS)
        tagmpi_progress(t); /* until the last message is acknowledged */
    boot_exchange(t->boot, NULL, NULL, 0);
    if (!TAILQ_EMPTY(&t->posted) || !TAILQ_EMPTY(&t->unexpected))
        fatal(t->boot->rank, "closed with receives or messages that nobody has waited for");
    device_close(&t->device);
    free(t->rendezvous);
    free(t);
}

void tagmpi_register(struct tagmpi *t, void *memory, size_t size)
{
    device_register(&t->device, memory, size);
}

struct tagmpi_counts tagmpi_counts(const struct tagmpi *t)
{
    struct tagmpi_counts c = t->counts;

    c.adds = t->list.adds;
    c.dels = t->list.dels;
    c.syncs = t->list.syncs;
    return c;
}
