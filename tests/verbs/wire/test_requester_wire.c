// SPDX-License-Identifier: BSD-2-Clause
/* The requester of an RC QP: timeouts, retries and RNR waits. The program is a responder that does not answer, or answers late. */
#include "tests/verbs/wire/wire_host.h"

#define FIRST 0xffffffu /* so the PSNs wrap after one packet */
#define TIMEOUT 14 /* 67 ms; a daemon makes up to four times as much of it */

static struct vt_end e;
static struct wire_host w;

/* A counter of the device: of the status, in the section "counters". */
static long counter(const char *name)
{
    char command[512], line[512], field[64];
    const char *build = getenv("VT_BUILD");
    long value = 0;
    need(build && snprintf(command, sizeof(command), "env -u LD_PRELOAD %s/bin/pumice status --json", build) > 0);
    snprintf(field, sizeof(field), "\"%s\": ", name);
    FILE *f = popen(command, "r");
    need(f);
    bool section = false;
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, field);
        if (strstr(line, "counters\": {"))
            section = strstr(line, " \"counters\": {") != NULL;
        if (section && at && value == 0)
            value = atol(at + strlen(field));
    }
    need(pclose(f) == 0);
    return value;
}

/* A new QP, because errors end the last one. */
static void connect_again(uint8_t timeout, uint8_t retry_cnt, uint8_t rnr_retry)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = timeout,
                            .retry_cnt = retry_cnt,
                            .rnr_retry = rnr_retry,
                            .sq_psn = FIRST,
                            .max_rd_atomic = 4};
    struct pkt p;
    if (e.qp)
        need(ibv_destroy_qp(e.qp) == 0);
    while (wire_take(&w, 0.02, &p))
        ;
    need((e.qp = vt_end_qp(&e, IBV_QPT_RC, NULL, 0)));
    wire_connect(&w, e.qp, FIRST);
    need(ibv_modify_qp(e.qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void post(uint64_t id, uint32_t len)
{
    struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    need(vt_end_post(&e, &wr, 0, len) == 0);
}

static void answer(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    wire_send(&w, (struct pkt){.opcode = OP_ACK, .psn = psn, .aeth = {syndrome, msn}}, NULL, 0);
}

static enum ibv_qp_state state(void)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    need(ibv_query_qp(e.qp, &a, IBV_QP_STATE, &init) == 0);
    return a.qp_state;
}

static bool is(struct ibv_wc wc, uint64_t id, enum ibv_wc_status status)
{
    if (wc.wr_id != id || wc.status != status)
        printf("# got: wr_id %lu, %s\n", (unsigned long)wc.wr_id,
               wc.status == 255 ? "nothing" : ibv_wc_status_str(wc.status));
    return wc.wr_id == id && wc.status == status;
}

/* Nobody answers. The request fails after retry_cnt + 1 timeouts. */
static void no_answer(uint8_t retry_cnt)
{
    char what[80];
    snprintf(what, sizeof(what), "retry_cnt %u: the error after as many packets sent again", retry_cnt);
    long timeouts = counter("timeout_retrans");
    connect_again(8, retry_cnt, 7);
    post(1, 8);
    post(2, 8);
    ok(is(vt_next(e.scq), 1, IBV_WC_RETRY_EXC_ERR) && is(vt_next(e.scq), 2, IBV_WC_WR_FLUSH_ERR) &&
           state() == IBV_QPS_ERR && counter("timeout_retrans") - timeouts == retry_cnt,
       what);
}

/* Without a timeout the QP never fails. */
static void no_timeout(void)
{
    struct ibv_wc wc;
    struct pkt p;
    connect_again(0, 0, 0);
    post(1, 8);
    usleep(500000);
    ok(ibv_poll_cq(e.scq, 1, &wc) == 0 && state() == IBV_QPS_RTS, "timeout 0: no error, also without any retries");
    while (wire_take(&w, 0.02, &p))
        need(p.psn == FIRST);
    answer(AETH_NO_CREDITS, FIRST, 1);
    ok(is(vt_next(e.scq), 1, IBV_WC_SUCCESS), "and success when the answer comes");
}

/* Each answer gives all retries back: more timeouts in all than retry_cnt, but never as many in a row. */
static void progress(void)
{
    enum { MESSAGES = 3, EACH = 3, RETRIES = 7 };
    long begin = counter("timeout_retrans");
    bool right = true;
    connect_again(TIMEOUT, RETRIES, 7);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        long now = counter("timeout_retrans");
        double end = vt_now() + vt_wait_seconds();
        post(i, 8);
        while (counter("timeout_retrans") < now + EACH && vt_now() < end)
            usleep(1000);
        answer(AETH_NO_CREDITS, FIRST + i, i + 1);
        right &= is(vt_next(e.scq), i, IBV_WC_SUCCESS);
    }
    printf("# %ld timeouts\n", counter("timeout_retrans") - begin);
    ok(right && counter("timeout_retrans") - begin > RETRIES, "an answer gives all retries back");
}

/* Answers each packet with "not ready" until the request fails, or until so many answers have been given. */
static unsigned refuse(unsigned most)
{
    struct ibv_wc wc;
    struct pkt p;
    unsigned n = 0;
    double end = vt_now() + vt_wait_seconds();
    while (n < most && vt_now() < end) {
        if (wire_take(&w, 0.05, &p)) {
            answer(AETH_RNR | 1, p.psn, 0); /* 0.01 ms */
            n++;
        } else if (ibv_poll_cq(e.scq, 1, &wc) == 1) {
            return is(wc, 1, IBV_WC_RNR_RETRY_EXC_ERR) ? n : 0;
        }
    }
    return n;
}

/* The error comes after rnr_retry packets sent again. If this program has no processor for some time, the QP's tail probe sends a
 * packet again. Then this program refuses the packet twice. The second RNR NAK may come while the QP waits because of the first one;
 * the device counts it, but it is no retry. So the device counts rnr_retry + 1 NAKs, and at most one more for each probe. */
static void not_ready_fails(uint8_t retries)
{
    char what[80];
    snprintf(what, sizeof(what), "rnr_retry %u: the error after as many packets sent again", retries);
    long naks = counter("rcvd_rnr_err"), again = counter("rnr_retrans"), failed = counter("retry_rnr_exceeded_err");
    connect_again(TIMEOUT, 7, retries);
    long probes = counter("probe_retrans");
    post(1, 8);
    unsigned n = refuse(100);
    naks = counter("rcvd_rnr_err") - naks;
    again = counter("rnr_retrans") - again;
    failed = counter("retry_rnr_exceeded_err") - failed;
    probes = counter("probe_retrans") - probes;
    printf("# %u answers, %ld of them counted; sent again: %ld times for them, %ld times as a probe\n", n, naks, again,
           probes);
    ok(n > retries && n < 100 && again == retries && failed == 1 && naks > retries && naks <= retries + 1 + probes &&
           state() == IBV_QPS_ERR,
       what);
}

static void not_ready(void)
{
    not_ready_fails(0);
    not_ready_fails(3);
    not_ready_fails(6);
    connect_again(TIMEOUT, 1, 7);
    post(1, 8);
    ok(refuse(50) == 50 && state() == IBV_QPS_RTS, "rnr_retry 7: no error after fifty answers");
    answer(AETH_NO_CREDITS, FIRST, 1);
    ok(is(vt_next(e.scq), 1, IBV_WC_SUCCESS), "and success when the responder is ready");
}

/* A message that the responder was not ready for comes again as a whole. */
static void whole_message(void)
{
    static const uint8_t ops[] = {OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST};
    struct pkt p;
    bool right = true;
    connect_again(TIMEOUT, 7, 7);
    for (unsigned i = 0; i < 2 * WIRE_MTU + 100; i++)
        e.buf[i] = (char)(i * 3);
    post(1, 2 * WIRE_MTU + 100);
    for (uint32_t i = 0; i < 3; i++)
        right &= wire_next(&w).psn == ((FIRST + i) & PSN_MASK);
    answer(AETH_RNR | 14, FIRST, 0); /* 1.28 ms */
    /* Packets that were already sent, such as a probe, may arrive before. */
    do
        p = wire_next(&w);
    while (p.psn != FIRST);
    for (uint32_t i = 0; i < 3; i++) {
        right &= p.opcode == ops[i] && p.psn == ((FIRST + i) & PSN_MASK) &&
                 !memcmp(p.payload, e.buf + i * WIRE_MTU, p.payload_len);
        if (i < 2)
            p = wire_next(&w);
    }
    ok(right, "after \"not ready\", a message of three packets comes again from its first PSN");
    answer(AETH_NO_CREDITS, FIRST + 2, 1);
    ok(is(vt_next(e.scq), 1, IBV_WC_SUCCESS), "and completes");
}

int main(void)
{
    VT_OWN("it needs the packets of the device");
    vt_ctx = vt_open();
    wire_open(&w, vt_ctx);
    vt_end_open(&e, vt_ctx);
    no_answer(0);
    no_answer(1);
    no_answer(7);
    no_timeout();
    progress();
    not_ready();
    whole_message();
    wire_close(&w);
    ok(vt_end_close(&e) && ibv_close_device(vt_ctx) == 0, "all is closed");
    return vt_failed;
}
