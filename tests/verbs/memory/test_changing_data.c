// SPDX-License-Identifier: BSD-2-Clause
/* A thread writes to the send buffer all the time while WRITEs from it are sent. A packet may have some of the old and
 * some of the new bytes, but its ICRC covers the bytes that are sent. A packet that is sent again has other bytes than
 * the first time. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/verbs/daemon_status.h"
#include "tests/verbs/ends.h"

#define SIZE (1u << 20)
#define MTU 1024u
#define WRITES 60u
#define MIXED 10u

static bool shared, lossy; /* what the part tests */
static struct vt_end a, b; /* a sends, b is on the other host */
static const char *host, *peer; /* their control sockets */
static char *from, *to; /* SIZE bytes each */
static struct ibv_mr *from_mr, *to_mr;
static atomic_bool stop;

/* Private memory, or memory of a file. All its pages exist. */
static char *new_memory(bool of_file)
{
    int fd = of_file ? memfd_create("data", MFD_CLOEXEC) : -1;
    need(!of_file || (fd >= 0 && ftruncate(fd, SIZE) == 0));
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    need(p != MAP_FAILED);
    memset(p, 1, SIZE);
    return p; /* the descriptor stays open, so that the library finds the file */
}

static void *scribble(void *arg)
{
    for (int c = 0; !atomic_load(&stop); c++)
        memset(from, c, SIZE);
    return arg;
}

static bool write_to_peer(uint32_t len)
{
    struct ibv_sge s = {(uintptr_t)from, len, from_mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)to;
    wr.wr.rdma.rkey = to_mr->rkey;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    return vt_next(a.scq).status == IBV_WC_SUCCESS;
}

/* Each pass of the thread writes the same value to all bytes. So different bytes show that the buffer changed while the
 * daemon read it. */
static bool is_mixed(uint32_t len)
{
    return memcmp(to, to + 1, len - 1) != 0;
}

/* WRITEs of 64 KiB to 1 MiB, at least WRITES, and until MIXED of them changed on their way. Returns the number of packets
 * that they need. */
static long write_changing_data(void)
{
    double end = vt_now() + 3 * vt_wait_seconds();
    unsigned writes = 0, mixed = 0;
    long packets = 0;
    bool all = true;
    while (all && (writes < WRITES || (mixed < MIXED && vt_now() < end))) {
        uint32_t len = SIZE >> 2 * (writes++ % 3);
        all = write_to_peer(len);
        mixed += is_mixed(len);
        packets += len / MTU;
    }
    printf("# %u WRITEs, %u of them changed on their way\n", writes, mixed);
    ok(all, "all WRITEs of changing data succeed");
    ok(mixed >= MIXED, "the data changed while they were read");
    return packets;
}

static void set_fault(const char *command)
{
    need(pclose(vt_pumice(host, command)) == 0);
}

static void change_and_write(void)
{
    pthread_t thread;
    long received = vt_counter(peer, "rx_packets");
    need(pthread_create(&thread, NULL, scribble, NULL) == 0);
    long packets = write_changing_data();
    atomic_store(&stop, true);
    need(pthread_join(thread, NULL) == 0);
    ok(vt_counter(peer, "rx_packets") - received >= packets, "the packets came by the network");
    ok(vt_counter(peer, "rx_icrc_errors") == 0, "the ICRC of each was right");
}

/* `pumice fault` sets the counters of faults to 0. */
static void change_and_lose(void)
{
    set_fault("fault loss=1%");
    change_and_write();
    ok(vt_counter(host, "fault_dropped") > 0, "some were lost, and sent again");
    set_fault("fault off");
}

static void write_at_rest(void)
{
    for (uint32_t i = 0; i < SIZE; i++)
        from[i] = (char)(i * 2654435761u >> 24);
    memset(to, 0, SIZE);
    ok(write_to_peer(SIZE) && memcmp(from, to, SIZE) == 0, "data that do not change arrive as they are");
}

static void test(void)
{
    host = getenv("PUMICE_SOCKET");
    peer = getenv("VT_PEER_SOCKET");
    struct ibv_context *other = vt_open_peer();
    need(other);
    vt_end_open(&a, vt_ctx);
    vt_end_open(&b, other);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    from = new_memory(shared);
    to = new_memory(false);
    need((from_mr = ibv_reg_mr(a.pd, from, SIZE, IBV_ACCESS_LOCAL_WRITE)));
    need((to_mr = ibv_reg_mr(b.pd, to, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
    if (!shared || vt_kernel_tells_mappings())
        ok(vt_is_mapped(host, from_mr) == shared, shared ? "the daemon maps the memory" : "the memory is private");
    if (lossy)
        change_and_lose();
    else
        change_and_write();
    write_at_rest();
    need(ibv_dereg_mr(from_mr) == 0 && ibv_dereg_mr(to_mr) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
    ok(ibv_close_device(other) == 0, "the other device is closed");
}

int main(void)
{
    VT_OWN("counters of its daemons");
    vt_part("private memory", test);
    shared = true;
    vt_part("memory of a file", test);
    lossy = true;
    vt_part("memory of a file, and packets are lost", test);
    shared = false;
    vt_part("private memory, and packets are lost", test);
    return vt_failed;
}
