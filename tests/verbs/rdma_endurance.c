// SPDX-License-Identifier: BSD-2-Clause
/* Data-checked RC traffic between two processes.
 *
 *     rdma_endurance [options]                 the server
 *     rdma_endurance [options] HOST            the client; it issues the operations
 *
 * Both ends derive the same list of operations from one seed (the client's), so each knows what every byte must be: the server checks
 * each SEND, WRITE and WRITE with immediate, the client each READ and atomic. The server grants credit as it checks, so traffic
 * flows both ways and no buffer is overwritten before it was looked at. Addresses are exchanged over TCP.
 *
 * Exit code: 0 all data right; 1 set-up failed; 2 wrong data; 3 a completion with an error (all of them are counted and printed
 * by status); 4 no progress for the time of -T. Lines on stdout are made for scripts: "event TYPE T TEXT" (asynchronous events),
 * "first-error STATUS T TEXT", "status STATUS COUNT TEXT", "outstanding N flushed N T", "ok N operations N bytes"; types and
 * statuses are the numbers of the verbs API, T is CLOCK_MONOTONIC in ms. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum op { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_FAA, OP_CAS, OP_MAX };
static const char *const op_name[OP_MAX] = {"send", "send_imm", "write", "write_imm", "read", "faa", "cas"};

enum { ATOMIC_WORDS = 8, MAX_SGE = 3, CREDIT_BYTES = 16, EXIT_DATA = 2, EXIT_STATUS = 3, EXIT_STALL = 4 };
#define CREDIT_WR UINT64_MAX

struct params { /* the client's go for both ends */
    uint64_t seed;
    uint64_t count; /* operations; UINT64_MAX: until the client's time is over */
    uint32_t min_size, max_size;
    uint32_t depth; /* operations between issue and check, at most */
    uint32_t ops; /* bit mask of enum op */
    uint32_t mtu;
};

struct peer { /* what travels over TCP, both ends on one architecture */
    struct params params;
    uint32_t qpn, psn, rkey, pad;
    uint64_t addr;
    union ibv_gid gid;
};

static struct options {
    const char *host, *dev;
    int port, gid_index, timeout, retries, stall_s, seconds, signal_every;
    bool events;
} opt = {.port = 18600, .timeout = 14, .retries = 7, .stall_s = 20, .signal_every = 4};
static struct params par = {
    .seed = 1, .count = 10000, .max_size = 65536, .depth = 32, .ops = (1u << OP_MAX) - 1, .mtu = 1024};

/* One registered block: depth slots for what is sent or received, depth slots as target of WRITEs (server) or READs
 * (client), the source of READs, the atomics, and the credits. */
static struct state {
    int tcp;
    struct ibv_context *ctx;
    struct ibv_comp_channel *channel;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *block, *scratch;
    uint64_t msg_at, target_at, source_at, atomic_at, credit_at, size; /* offsets in the block */
    uint32_t slot_size, inline_max;
    struct peer local, remote;
    uint64_t posted, done; /* client: operations posted, and completed */
    uint64_t checked; /* server: operations checked; client: as the server has granted */
    uint64_t granted; /* server: the last credit sent */
    uint64_t credits_posted, credits_done;
    uint64_t atomic[ATOMIC_WORDS]; /* client: what the server's words hold */
    uint64_t expect[4096]; /* client: what an atomic must return, by operation modulo depth */
    uint64_t bytes;
    uint64_t status[64]; /* completions by status */
    uint64_t last_progress;
    bool failed;
} st;

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void die(const char *what)
{
    fprintf(stderr, "rdma_endurance: %s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(1);
}

/* --- what operation number k is ------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct operation {
    enum op op;
    uint32_t size;
    uint32_t word; /* atomics */
    uint64_t source; /* READ: offset in the source */
    uint32_t cut; /* SGEs: the first gets this many bytes */
    bool inlined, solicited, fence;
};

/* The last operation of each quarter of the depth makes the server look, or the credits would run dry. */
static bool is_sync(uint64_t k)
{
    uint32_t quarter = par.depth / 4;

    return k % quarter == quarter - 1 || k + 1 == par.count;
}

static bool is_received(enum op op)
{
    return op == OP_SEND || op == OP_SEND_IMM || op == OP_WRITE_IMM;
}

static struct operation operation_get(uint64_t k)
{
    uint64_t r = mix(par.seed * 0x9e3779b97f4a7c15u + k + 1), r2 = mix(r + 1), r3 = mix(r + 2);
    struct operation o = {.solicited = r & 1, .fence = (r >> 1) % 8 == 0, .inlined = r >> 4 & 1};
    uint32_t span = par.max_size - par.min_size + 1, mask = par.ops;

    if (is_sync(k)) {
        mask &= 1u << OP_SEND | 1u << OP_SEND_IMM | 1u << OP_WRITE_IMM;
        if (mask == 0)
            mask = 1u << OP_SEND;
    }
    for (uint32_t pick = (uint32_t)(r >> 8) % (uint32_t)__builtin_popcount(mask); pick > 0; pick--)
        mask &= mask - 1;
    o.op = (enum op)__builtin_ctz(mask);
    /* Half of the sizes are uniform, half small: both the many-packet and the one-packet paths get their share. */
    o.size = par.min_size + (uint32_t)(r2 % ((r2 >> 40 & 1) ? span : span < 256 ? span : 256));
    if (o.op == OP_FAA || o.op == OP_CAS)
        o.size = 8;
    o.word = (uint32_t)(r3 % ATOMIC_WORDS);
    o.source = r3 % (st.slot_size - o.size + 1);
    o.cut = o.size == 0 ? 0 : (uint32_t)(r3 >> 20) % (o.size + 1);
    return o;
}

/* Fills p with the bytes that belong to (stream, offset); a reader may start at any multiple of 8. */
static void pattern(uint8_t *p, uint32_t size, uint64_t stream, uint64_t offset)
{
    uint64_t word, base = mix(par.seed ^ mix(stream));
    uint32_t i;

    for (i = 0; i + 8 <= size; i += 8) {
        word = (base + offset + i) * 0x9e3779b97f4a7c15u;
        word ^= word >> 29;
        memcpy(p + i, &word, 8);
    }
    if (i < size) {
        word = (base + offset + i) * 0x9e3779b97f4a7c15u;
        word ^= word >> 29;
        memcpy(p + i, &word, size - i);
    }
}

static void check(uint64_t k, const struct operation *o, const uint8_t *data, uint64_t stream, uint64_t offset)
{
    uint32_t at = 0;

    pattern(st.scratch, o->size, stream, offset);
    if (memcmp(st.scratch, data, o->size) == 0)
        return;
    while (st.scratch[at] == data[at])
        at++;
    printf("wrong data: operation %llu %s size %u, first at byte %u: %02x instead of %02x\n", (unsigned long long)k,
           op_name[o->op], o->size, at, data[at], st.scratch[at]);
    exit(EXIT_DATA);
}

/* --- set-up --------------------------------------------------------------------------------------------------------- */

static void block_make(void)
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

static void objects_create(void)
{
    pthread_t thread;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    device_open();
    if (pthread_create(&thread, NULL, async_main, NULL) != 0)
        die("thread");
    pthread_detach(thread);
    if (opt.events && (st.channel = ibv_create_comp_channel(st.ctx)) == NULL)
        die("completion channel");
    if ((st.pd = ibv_alloc_pd(st.ctx)) == NULL)
        die("protection domain");
    if ((st.mr = ibv_reg_mr(st.pd, st.block, st.size, access)) == NULL)
        die("memory region");
    if ((st.cq = ibv_create_cq(st.ctx, (int)par.depth * 4, NULL, st.channel, 0)) == NULL)
        die("completion queue");
    if (opt.events && ibv_req_notify_cq(st.cq, 0) != 0)
        die("request notification");

    struct ibv_qp_init_attr init = {
        .send_cq = st.cq,
        .recv_cq = st.cq,
        .cap = {.max_send_wr = par.depth * 2,
                .max_recv_wr = par.depth,
                .max_send_sge = MAX_SGE,
                .max_recv_sge = MAX_SGE,
                .max_inline_data = 64},
        .qp_type = IBV_QPT_RC,
    };
    if ((st.qp = ibv_create_qp(st.pd, &init)) == NULL)
        die("queue pair");
    st.inline_max = init.cap.max_inline_data;

    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = (unsigned)access & ~(unsigned)IBV_ACCESS_LOCAL_WRITE};
    if (ibv_modify_qp(st.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
        die("modify to INIT");
}

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
    return bytes >= 4096   ? IBV_MTU_4096
           : bytes >= 2048 ? IBV_MTU_2048
           : bytes >= 1024 ? IBV_MTU_1024
           : bytes >= 512  ? IBV_MTU_512
                           : IBV_MTU_256;
}

static void qp_connect(void)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_enum(par.mtu),
        .dest_qp_num = st.remote.qpn,
        .rq_psn = st.remote.psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = st.remote.gid, .sgid_index = (uint8_t)opt.gid_index, .hop_limit = 64}},
    };
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)opt.timeout,
        .retry_cnt = (uint8_t)opt.retries,
        .rnr_retry = 7,
        .sq_psn = st.local.psn,
        .max_rd_atomic = 4,
    };

    if (ibv_modify_qp(st.qp, &rtr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
        die("modify to RTR");
    if (ibv_modify_qp(st.qp, &rts,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) != 0)
        die("modify to RTS");
}

static void tcp_connect(void)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = opt.host ? 0 : AI_PASSIVE, .ai_family = AF_INET},
                    *ai;
    char service[16];
    int one = 1, fd;

    snprintf(service, sizeof service, "%d", opt.port);
    if (getaddrinfo(opt.host, service, &hints, &ai) != 0 || (fd = socket(ai->ai_family, SOCK_STREAM, 0)) < 0)
        die("address");
    if (opt.host) {
        if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0)
            die("connect");
        st.tcp = fd;
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, 1) != 0 || (st.tcp = accept(fd, NULL, NULL)) < 0)
            die("listen");
        close(fd);
    }
    freeaddrinfo(ai);
}

static void tcp_write(const void *p, size_t n)
{
    if (write(st.tcp, p, n) != (ssize_t)n)
        die("TCP write");
}

static void tcp_read(void *p, size_t n)
{
    if (recv(st.tcp, p, n, MSG_WAITALL) != (ssize_t)n) {
        errno = ECONNRESET;
        die("TCP read");
    }
}

/* --- running -------------------------------------------------------------------------------------------------------- */

static void post_recv(uint64_t index)
{
    uint64_t slot = index % par.depth;
    bool server = opt.host == NULL;
    uint8_t *p = st.block + (server ? st.msg_at + slot * st.slot_size : st.credit_at + slot * CREDIT_BYTES);
    uint32_t size = server ? st.slot_size : CREDIT_BYTES, cut = server ? (uint32_t)(mix(index) % (size + 1)) : size;
    struct ibv_sge sge[2] = {{(uintptr_t)p, cut, st.mr->lkey}, {(uintptr_t)p + cut, size - cut, st.mr->lkey}};
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = sge, .num_sge = cut < size ? 2 : 1}, *bad;

    if ((errno = ibv_post_recv(st.qp, &wr, &bad)) != 0)
        die("post receive");
}

static bool post_send(struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    errno = ibv_post_send(st.qp, wr, &bad);
    if (errno == 0)
        return true;
    if (!st.failed)
        die("post send");
    return false;
}

/* Client: issues operation k. */
static void issue(uint64_t k)
{
    struct operation o = operation_get(k);
    uint64_t slot = k % par.depth;
    uint8_t *local = st.block + (o.op >= OP_READ ? st.target_at : st.msg_at) + slot * st.slot_size;
    struct ibv_sge sge[2] = {{(uintptr_t)local, o.cut, st.mr->lkey},
                             {(uintptr_t)local + o.cut, o.size - o.cut, st.mr->lkey}};
    struct ibv_send_wr wr = {.wr_id = k, .sg_list = sge, .num_sge = 2, .imm_data = htonl((uint32_t)k)};
    static const enum ibv_wr_opcode code[OP_MAX] = {
        IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
    };

    wr.opcode = code[o.op];
    wr.send_flags = (o.solicited ? IBV_SEND_SOLICITED : 0) | (o.fence ? IBV_SEND_FENCE : 0);
    if (k % (uint64_t)opt.signal_every == 0 || is_sync(k))
        wr.send_flags |= IBV_SEND_SIGNALED;
    if (o.op < OP_READ) {
        pattern(local, o.size, k, 0);
        if (o.inlined && o.size <= st.inline_max)
            wr.send_flags |= IBV_SEND_INLINE;
    }
    wr.wr.rdma.rkey = st.remote.rkey;
    wr.wr.rdma.remote_addr =
        st.remote.addr + (o.op == OP_READ ? st.source_at + o.source : st.target_at + slot * st.slot_size);
    if (o.op >= OP_FAA) {
        uint64_t *word = &st.atomic[o.word], value = mix(k);

        sge[0].length = 8;
        wr.num_sge = 1;
        wr.wr.atomic.rkey = st.remote.rkey;
        wr.wr.atomic.remote_addr = st.remote.addr + st.atomic_at + o.word * 8;
        /* Every third compare-and-swap compares with a wrong value and must leave the word as it is. */
        wr.wr.atomic.compare_add = o.op == OP_FAA ? value : *word + (k % 3 == 0);
        wr.wr.atomic.swap = value;
        st.expect[slot] = *word;
        *word = o.op == OP_FAA ? *word + value : k % 3 == 0 ? *word : value;
    }
    post_send(&wr);
}

/* Client: operation k has completed. */
static void finish(uint64_t k)
{
    struct operation o = operation_get(k);
    uint8_t *local = st.block + st.target_at + k % par.depth * st.slot_size;
    uint64_t value;

    st.bytes += o.size;
    if (o.op == OP_READ && memcmp(local, st.block + st.source_at + o.source, o.size) != 0) {
        printf("wrong data: operation %llu read size %u\n", (unsigned long long)k, o.size);
        exit(EXIT_DATA);
    }
    if (o.op < OP_FAA)
        return;
    memcpy(&value, local, 8);
    if (value != st.expect[k % par.depth]) {
        printf("wrong data: operation %llu %s returned %llx instead of %llx\n", (unsigned long long)k, op_name[o.op],
               (unsigned long long)value, (unsigned long long)st.expect[k % par.depth]);
        exit(EXIT_DATA);
    }
}

/* Server: receive number `index` has completed; it and all WRITEs before it are looked at. */
static void receive(uint64_t index, const struct ibv_wc *wc)
{
    struct operation o;
    uint64_t k;

    do {
        k = st.checked++;
        o = operation_get(k);
        st.bytes += o.op >= OP_READ ? 0 : o.size;
        if (o.op == OP_WRITE || o.op == OP_WRITE_IMM)
            check(k, &o, st.block + st.target_at + k % par.depth * st.slot_size, k, 0);
    } while (!is_received(o.op));
    if (o.op != OP_WRITE_IMM)
        check(k, &o, st.block + st.msg_at + index % par.depth * st.slot_size, k, 0);
    if (wc->byte_len != o.size || wc->opcode != (o.op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
        (o.op != OP_SEND && (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != (uint32_t)k))) {
        printf("wrong completion: operation %llu %s: byte_len %u instead of %u, opcode %d, flags %x, immediate %x\n",
               (unsigned long long)k, op_name[o.op], wc->byte_len, o.size, (int)wc->opcode, wc->wc_flags,
               ntohl(wc->imm_data));
        exit(EXIT_DATA);
    }
    post_recv(index + par.depth);
}

/* Server: tells the client how far it has checked. Both use it as a probe when the peer's TCP connection has ended:
 * a side with nothing outstanding would never learn from its QP that the peer is dead. */
static void grant(void)
{
    uint64_t credit[2] = {st.checked, ~st.checked};
    uint8_t *p = st.block + st.credit_at + st.credits_posted % par.depth * CREDIT_BYTES;
    struct ibv_sge sge = {(uintptr_t)p, CREDIT_BYTES, st.mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = CREDIT_WR, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

    memcpy(p, credit, sizeof credit);
    if (post_send(&wr))
        st.credits_posted++;
    st.granted = st.checked;
}

static void credit_received(uint64_t index)
{
    uint64_t credit[2];

    memcpy(credit, st.block + st.credit_at + index % par.depth * CREDIT_BYTES, sizeof credit);
    if (credit[0] != ~credit[1] || credit[0] < st.checked || credit[0] > st.posted) {
        printf("wrong data: credit %llx %llx\n", (unsigned long long)credit[0], (unsigned long long)credit[1]);
        exit(EXIT_DATA);
    }
    st.checked = credit[0];
    post_recv(index + par.depth);
}

static void completion(const struct ibv_wc *wc)
{
    st.status[wc->status & 63]++;
    if (wc->status != IBV_WC_SUCCESS) {
        if (!st.failed)
            printf("first-error %d %llu %s\n", (int)wc->status, (unsigned long long)now_ms(),
                   ibv_wc_status_str(wc->status));
        fflush(stdout);
        st.failed = true;
        return;
    }
    st.last_progress = now_ms();
    if (st.failed)
        return;
    if (wc->opcode & IBV_WC_RECV) {
        if (opt.host == NULL)
            receive(wc->wr_id, wc);
        else
            credit_received(wc->wr_id);
    } else if (wc->wr_id == CREDIT_WR) {
        st.credits_done++;
    } else {
        if (wc->wr_id < st.done || wc->wr_id >= st.posted) {
            printf("wrong completion: operation %llu, when %llu are done and %llu posted\n",
                   (unsigned long long)wc->wr_id, (unsigned long long)st.done, (unsigned long long)st.posted);
            exit(EXIT_DATA);
        }
        while (st.done <= wc->wr_id)
            finish(st.done++);
    }
}

static int poll_all(void)
{
    struct ibv_wc wc[16];
    int n, total = 0;

    while ((n = ibv_poll_cq(st.cq, 16, wc)) > 0) {
        for (int i = 0; i < n; i++)
            completion(&wc[i]);
        total += n;
    }
    if (n < 0)
        die("poll completion queue");
    return total;
}

/* Waits on the completion channel, for 100 ms at most, so that time limits are seen. */
static void wait_event(void)
{
    struct pollfd p = {.fd = st.channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    if (poll(&p, 1, 100) != 1)
        return;
    if (ibv_get_cq_event(st.channel, &cq, &context) != 0)
        die("completion event");
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(st.cq, 0) != 0)
        die("request notification");
}

/* A peer that died leaves an end of file on TCP. What then is posted must complete with an error. */
static bool peer_gone(void)
{
    char c;

    return recv(st.tcp, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool finished(bool *closing)
{
    uint64_t total;

    if (opt.host != NULL)
        return st.posted == par.count && st.done == par.count && st.checked == par.count;
    /* The client tells over TCP how many there were, once all are checked. */
    if (!*closing && now_ms() - st.last_progress >= 2 &&
        recv(st.tcp, &total, sizeof total, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof total)
        *closing = true;
    return *closing && st.credits_done == st.credits_posted;
}

static void advance(uint64_t end)
{
    if (opt.host == NULL) {
        if (st.checked - st.granted >= par.depth / 4 || (st.granted < st.checked && is_sync(st.checked - 1)))
            grant();
        return;
    }
    /* A run limited by time ends at a point where the server checks. */
    if (par.count == UINT64_MAX && now_ms() >= end && is_sync(st.posted - 1))
        par.count = st.posted;
    while (!st.failed && st.posted < par.count && st.posted < st.checked + par.depth &&
           st.posted < st.done + par.depth) {
        issue(st.posted++);
        if (par.count == UINT64_MAX && is_sync(st.posted - 1))
            break;
    }
}

static int run(void)
{
    uint64_t end = now_ms() + (uint64_t)opt.seconds * 1000;
    bool closing = false, probed = false;

    for (uint64_t i = 0; i < par.depth; i++)
        post_recv(i);
    qp_connect();
    /* Both must be ready to receive before the first packet. */
    tcp_write("r", 1);
    tcp_read((char[1]){0}, 1);
    st.last_progress = now_ms();
    while (!st.failed && !finished(&closing)) {
        advance(end);
        if (poll_all() > 0)
            continue;
        if (opt.events)
            wait_event();
        if (now_ms() - st.last_progress > 20 && !probed && peer_gone()) {
            printf("peer gone\n");
            fflush(stdout);
            probed = true;
            grant();
        }
        if (now_ms() - st.last_progress > (uint64_t)opt.stall_s * 1000) {
            printf("no progress: posted %llu done %llu checked %llu\n", (unsigned long long)st.posted,
                   (unsigned long long)st.done, (unsigned long long)st.checked);
            return EXIT_STALL;
        }
    }
    return st.failed ? EXIT_STATUS : 0;
}

/* After an error every request that is still out must come back, flushed: the receives and what was sent. */
static void drain(void)
{
    uint64_t end = now_ms() + 2000, want = par.depth, got = 0;

    do {
        poll_all();
        got = st.status[IBV_WC_WR_FLUSH_ERR];
        usleep(100);
    } while (now_ms() < end && got < want);
    printf("outstanding %llu flushed %llu %llu\n", (unsigned long long)want, (unsigned long long)got,
           (unsigned long long)now_ms());
    for (int i = 0; i < 64; i++)
        if (st.status[i])
            printf("status %d %llu %s\n", i, (unsigned long long)st.status[i],
                   ibv_wc_status_str((enum ibv_wc_status)i));
    usleep(100000); /* for an event that comes with the error */
}

static void objects_destroy(void)
{
    if (ibv_destroy_qp(st.qp) || ibv_destroy_cq(st.cq) || ibv_dereg_mr(st.mr) || ibv_dealloc_pd(st.pd) ||
        (st.channel && ibv_destroy_comp_channel(st.channel)))
        die("destroy");
    /* The context stays open: a thread sits in ibv_get_async_event. Process exit closes it. */
}

static void exchange(void)
{
    bool client = opt.host != NULL;

    tcp_connect();
    st.local.params = par;
    if (client)
        tcp_write(&par, sizeof par);
    else
        tcp_read(&par, sizeof par);
    block_make();
    objects_create();
    if (ibv_query_gid(st.ctx, 1, opt.gid_index, &st.local.gid) != 0)
        die("query GID");
    st.local.qpn = st.qp->qp_num;
    st.local.psn = (uint32_t)mix(par.seed + (client ? 1 : 2)) & 0xffffff;
    st.local.rkey = st.mr->rkey;
    st.local.addr = (uintptr_t)st.block;
    tcp_write(&st.local, sizeof st.local);
    tcp_read(&st.remote, sizeof st.remote);
}

static uint32_t ops_parse(char *list)
{
    uint32_t mask = 0;

    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        int i = 0;

        while (i < OP_MAX && strcmp(name, op_name[i]) != 0)
            i++;
        if (i == OP_MAX) {
            fprintf(stderr, "rdma_endurance: unknown operation %s\n", name);
            exit(1);
        }
        mask |= 1u << i;
    }
    return mask;
}

static const char usage[] =
    "usage: rdma_endurance [options] [HOST]\n"
    "  -p PORT      TCP port (18600)              -d NAME   device (the first)\n"
    "  -g INDEX     GID index (0)                 -m BYTES  path MTU (1024)\n"
    "  -n COUNT     operations (10000)            -D SEC    for a time instead\n"
    "  -s, -S SIZE  smallest, largest (0, 65536)  -q DEPTH  window of operations, 8 to 4096 (32)\n"
    "  -o LIST      send,send_imm,write,write_imm,read,faa,cas\n"
    "  -r SEED      (1)                           -u N      signal every Nth request (4)\n"
    "  -e           wait by completion events     -T SEC    give up after this long without progress (20)\n"
    "  -t, -R N     QP timeout and retry_cnt (14, 7)\n"
    "All but -p -d -g -e -t -R -T are the client's to say.\n";

static void options_parse(int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "p:d:g:m:n:D:s:S:q:o:r:u:T:t:R:eh")) != -1) {
        switch (c) {
        case 'p':
            opt.port = atoi(optarg);
            break;
        case 'd':
            opt.dev = optarg;
            break;
        case 'g':
            opt.gid_index = atoi(optarg);
            break;
        case 'm':
            par.mtu = (uint32_t)atoi(optarg);
            break;
        case 'n':
            par.count = strtoull(optarg, NULL, 0);
            break;
        case 'D':
            opt.seconds = atoi(optarg), par.count = UINT64_MAX;
            break;
        case 's':
            par.min_size = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'S':
            par.max_size = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'q':
            par.depth = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'o':
            par.ops = ops_parse(optarg);
            break;
        case 'r':
            par.seed = strtoull(optarg, NULL, 0);
            break;
        case 'u':
            opt.signal_every = atoi(optarg);
            break;
        case 'T':
            opt.stall_s = atoi(optarg);
            break;
        case 't':
            opt.timeout = atoi(optarg);
            break;
        case 'R':
            opt.retries = atoi(optarg);
            break;
        case 'e':
            opt.events = true;
            break;
        default:
            fputs(usage, c == 'h' ? stdout : stderr), exit(c == 'h' ? 0 : 1);
        }
    }
    opt.host = optind < argc ? argv[optind] : NULL;
    if (par.depth < 8 || par.depth > 4096 || par.depth % 4 || par.min_size > par.max_size || par.count == 0 ||
        opt.signal_every < 1 || par.ops == 0) {
        fputs(usage, stderr);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    uint64_t total;
    int ret;

    options_parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    exchange();
    printf("connected %llu\n", (unsigned long long)now_ms());
    ret = run();
    if (ret != 0) {
        drain();
        return ret;
    }
    total = opt.host ? par.count : 0;
    if (opt.host) {
        tcp_write(&total, sizeof total);
        tcp_read(&total, sizeof total);
    } else {
        tcp_read(&total, sizeof total);
        tcp_write(&total, sizeof total);
        if (st.checked != total) {
            printf("checked %llu of %llu operations\n", (unsigned long long)st.checked, (unsigned long long)total);
            return EXIT_DATA;
        }
    }
    objects_destroy();
    printf("ok %llu operations %llu bytes\n", (unsigned long long)total, (unsigned long long)st.bytes);
    return 0;
}
