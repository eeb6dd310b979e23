// SPDX-License-Identifier: BSD-2-Clause
/* End-to-end credits: the receives of messages come late. With the option e2e-credits of both daemons (VT_CREDITS=1) the
 * sender waits, and no message is refused. Without it, RNR NAKs refuse messages. */
#include "tests/verbs/ends.h"

#define MESSAGES 12u
#define LEN 100u

static struct vt_end a, b;
static bool credits;

/* A counter of the host with this control socket. */
static long counter(const char *socket, const char *name)
{
    char command[512], text[32] = "";
    snprintf(command, sizeof(command),
             "env -u LD_PRELOAD %s/bin/pumice status --json --socket %s | grep -o '\"%s\": *[0-9]*' | head -n 1 | "
             "grep -o '[0-9]*$'",
             getenv("VT_BUILD"), socket, name);
    FILE *f = popen(command, "r");
    need(f && fgets(text, sizeof(text), f));
    pclose(f);
    return atol(text);
}

/* Does `pumice why` give this reason for the QP? Waits until it does. */
static bool waits_for(const char *socket, uint32_t qpn, const char *reason)
{
    char command[512], text[4096];
    double end = vt_now() + vt_wait_seconds();
    snprintf(command, sizeof(command), "env -u LD_PRELOAD %s/bin/pumice why --json --socket %s 0x%x",
             getenv("VT_BUILD"), socket, qpn);
    while (vt_now() < end) {
        FILE *f = popen(command, "r");
        need(f);
        size_t n = fread(text, 1, sizeof(text) - 1, f);
        text[n] = 0;
        pclose(f);
        if (strstr(text, reason))
            return true;
    }
    printf("# %s\n", text);
    return false;
}

static void post(unsigned i)
{
    static const enum ibv_wr_opcode kinds[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
    struct ibv_send_wr wr = {.wr_id = i, .opcode = kinds[i % 3], .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf + i * LEN;
    wr.wr.rdma.rkey = b.mr->rkey;
    memset(a.buf + i * LEN, 'a' + (int)i, LEN);
    need(vt_end_post(&a, &wr, i * LEN, LEN) == 0);
}

static bool arrived(unsigned i)
{
    struct ibv_wc wc = vt_next(b.rcq);
    char want[LEN];
    memset(want, 'a' + (int)i, LEN);
    return wc.status == IBV_WC_SUCCESS && wc.wr_id == i && memcmp(b.buf + i * LEN, want, LEN) == 0;
}

/* Two receives are there. The others come one by one, each when the sender waits for it. */
static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    const char *own = getenv("PUMICE_SOCKET"), *peer = ca == cb ? own : getenv("VT_PEER_SOCKET");
    bool right = true, waited = true;
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    long refused = counter(peer, "send_rnr_err");
    for (unsigned i = 0; i < 2; i++)
        need(vt_end_recv(&b, i, i * LEN, LEN) == 0);
    for (unsigned i = 0; i < MESSAGES; i++)
        post(i);
    for (unsigned i = 0; i < MESSAGES; i++) {
        if (i >= 2) {
            waited &= waits_for(own, a.qp->qp_num, credits ? "recv_credit" : "rnr");
            need(vt_end_recv(&b, i, i * LEN, LEN) == 0);
        }
        right &= arrived(i) && vt_next(a.scq).status == IBV_WC_SUCCESS;
    }
    refused = counter(peer, "send_rnr_err") - refused;
    printf("# %ld RNR NAKs\n", refused);
    ok(right, "all messages arrive, once and in order");
    ok(waited, "pumice why says that the sender waits for receive requests");
    ok(credits ? refused == 0 : refused > 0,
       credits ? "no message is refused" : "without credits, messages are refused");
    if (credits)
        ok(counter(own, "credit_waits") >= MESSAGES - 2 && counter(own, "credit_asks") == 0,
           "the sender waits for each late receive, and never asks");
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("counters of the daemon");
    credits = getenv("VT_CREDITS") != NULL;
    return vt_both(test);
}
