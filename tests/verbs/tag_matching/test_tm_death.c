// SPDX-License-Identifier: BSD-2-Clause
/* Messages to TM-SRQs that fail: the sender is killed, the QP fails, the buffer is too short, or nobody takes the
 * FIN. None of them is counted, every matched entry gets one last completion, and the list still serves the other
 * QPs. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/verbs/tag_matching/tags.h"

#define HEAD ((uint32_t)(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh)))
#define BIG (1u << 20)

static const char *self; /* this program */

/* --- a sender in a process of its own */

struct address {
    uint32_t qpn;
    union ibv_gid gid;
};

/* The process: connects a QP to the one that it reads from its input, and when another byte comes sends a big
 * message. */
static int be_sender(void)
{
    struct address me, peer;
    struct tm_side s;
    tm_side_open(&s, vt_open());
    struct ibv_cq *cq = ibv_cq_ex_to_cq(s.cq);
    struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    need((s.qp[0] = ibv_create_qp(s.pd, &a)));
    me = (struct address){s.qp[0]->qp_num, s.gid};
    need(write(3, &me, sizeof(me)) == sizeof(me) && read(0, &peer, sizeof(peer)) == sizeof(peer));
    need(vt_to_init(s.qp[0]) == 0 && vt_to_rtr_at(s.qp[0], peer.qpn, &peer.gid) == 0 && vt_to_rts(s.qp[0]) == 0);
    tm_header(&s, IBV_TMH_EAGER, 99, 0);
    need(write(3, "c", 1) == 1 && read(0, &peer, 1) == 1);
    tm_post(&s, 0, BIG, NULL);
    pause();
    return 0;
}

struct child {
    pid_t pid;
    int to, from;
};
static struct child start_sender(bool other_host)
{
    int to[2], from[2];
    struct child c;
    need(pipe(to) == 0 && pipe(from) == 0 && (c.pid = fork()) >= 0);
    if (c.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 3);
        if (other_host)
            setenv("PUMICE_SOCKET", getenv("VT_PEER_SOCKET"), 1);
        execl(self, self, "sender", (char *)NULL);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    c.to = to[1];
    c.from = from[0];
    return c;
}

/* Is an unexpected message under way? Asks until it is. */
static bool arriving(struct tm_side *r)
{
    double end = vt_now() + 10;
    while (vt_now() < end) {
        need(tm_op(r, 78, IBV_WR_TAG_SYNC, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC, 0, 0) == 0);
        struct tm_wc wc = tm_next(r);
        need(wc.opcode == IBV_WC_TM_SYNC && wc.wr_id == 78);
        if (wc.flags & IBV_WC_TM_SYNC_REQ)
            return true;
        usleep(500);
    }
    return false;
}

/* A sender is killed in the middle of an unexpected message. */
static void killed(struct tm_pair *p, bool other_host)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct child c = start_sender(other_host);
    struct ibv_qp_init_attr init = {.send_cq = r->other, .recv_cq = r->other, .srq = r->srq, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(r->pd, &init);
    struct address peer, me = {qp ? qp->qp_num : 0, r->gid};
    char rule[64], byte;
    need(qp && read(c.from, &peer, sizeof(peer)) == sizeof(peer) && write(c.to, &me, sizeof(me)) == sizeof(me));
    need(vt_to_init(qp) == 0 && vt_to_rtr_at(qp, peer.qpn, &peer.gid) == 0 && vt_to_rts(qp) == 0);
    snprintf(rule, sizeof(rule), "qpn=%u,only=send,mask=0xfffffffffffffffe", qp->qp_num);
    tm_strike(rule); /* one of 64 packets arrives, the first one among them */
    tm_add(r, 1, 20, 0, 64);
    tm_buffer(r, 50, 65536, 1u << 21);
    need(read(c.from, &byte, 1) == 1 && write(c.to, "g", 1) == 1);
    ok(arriving(r), "a big unexpected message arrives");
    need(tm_eager(s, 1, 20, 10));
    ok(tm_matched(r, 1, 20, 10), "entries from before match meanwhile");
    struct tm_add late = {.id = 2, .tag = 21, .mask = EXACT, .len = 64, .flags = IBV_OPS_SIGNALED};
    ok(tm_try_add(r, &late, NULL) == 0 && tm_got(r, IBV_WC_TM_ADD, 2, IBV_WC_TM_SYNC_REQ), "a new one has to wait");
    need(kill(c.pid, SIGKILL) == 0 && waitpid(c.pid, NULL, 0) == c.pid);
    ok(vt_to_state(qp, IBV_QPS_ERR) == 0, "the sender is killed, and its QP here given up");
    struct tm_wc wc = tm_next(r);
    ok(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 50 && wc.qpn == qp->qp_num, "the message's buffer is flushed");
    ok(tm_sync(r, 0), "nothing is counted, so device and program agree");
    need(tm_eager(s, 1, 21, 11));
    ok(tm_matched(r, 2, 21, 11), "and what the other QP brings matches the new entry");
    tm_strike("");
    ok(ibv_destroy_qp(qp) == 0, "that QP goes");
    close(c.to);
    close(c.from);
}

/* --- messages that are refused. The receiver's QP fails, too, so a lost NAK is not sent again. */

static bool refused(struct tm_side *s)
{
    int status = tm_sent(s);
    return status == IBV_WC_REM_INV_REQ_ERR || (tm_lossy() && status == IBV_WC_RETRY_EXC_ERR);
}
static bool failed(const struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    return ibv_query_qp((struct ibv_qp *)qp, &a, IBV_QP_STATE, &init) == 0 && a.qp_state == IBV_QPS_ERR;
}

static void too_long(struct tm_pair *p)
{
    struct ibv_device_attr_ex caps;
    struct tm_side *r = &p->r, *s = &p->s;
    need(ibv_query_device_ex(r->ctx, NULL, &caps) == 0);
    for (uint32_t len = 200; len < 4000; len += 3000) {
        tm_buffer(r, 51, 0, 100);
        tm_header(s, IBV_TMH_EAGER, 98, 0);
        tm_post(s, 0, len, NULL);
        struct tm_wc wc = tm_next(r);
        ok(wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == 51, "an unexpected message, too long for its buffer");
        ok(refused(s) && failed(r->qp[0]), "the sender is told, and the QP fails");
        ok(tm_sync(r, 0), "it is not counted");
        tm_replace(p, 0, &tm_usual);
    }
    uint32_t handle = tm_add(r, 3, 22, 0, 4096);
    tm_header(s, IBV_TMH_RNDV, 22, 0);
    tm_rvh(s, 65536, 100, s->mr->rkey);
    tm_post(s, 0, caps.tm_caps.max_rndv_hdr_size + 1, NULL);
    ok(refused(s) && failed(r->qp[0]), "a rendezvous request longer than max_rndv_hdr_size");
    ok(tm_op(r, 4, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED, handle, 0) == 0 && tm_got(r, IBV_WC_TM_DEL, 4, 0),
       "consumes nothing");
    tm_replace(p, 0, &tm_usual);
    tm_add(r, 5, 23, 65536, 4096);
    tm_recv(s, 0, 6, 32768, 64);
    tm_header(s, IBV_TMH_RNDV, 23, 0);
    tm_rvh(s, 65536, 100, s->mr->rkey);
    tm_post(s, 0, caps.tm_caps.max_rndv_hdr_size, NULL);
    ok(tm_got(r, IBV_WC_TM_RECV, 1005, IBV_WC_TM_MATCH) && tm_got(r, IBV_WC_TM_RECV, 1005, IBV_WC_TM_DATA_VALID),
       "one that is as long is good");
    struct tm_wc one = tm_next(s), other = tm_next(s);
    ok(one.status == 0 && other.status == 0 && (one.opcode == IBV_WC_RECV || other.opcode == IBV_WC_RECV), "finished");
}

/* --- a QP that goes in the middle of a rendezvous */

enum way { TO_ERR, TO_RESET, DESTROYED, SILENCE, WAYS };

static void reading(struct tm_pair *p)
{
    static const char *const what[] = {"the QP fails during the READ", "it is reset", "it is destroyed",
                                       "the peer is silent"};
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_how hasty = tm_usual;
    char rule[64];
    hasty.timeout = 10;
    hasty.retry_cnt = 2;
    for (int way = 0; way < WAYS; way++) {
        tm_replace(p, 0, way == SILENCE ? &hasty : &tm_usual);
        snprintf(rule, sizeof(rule), "qpn=%u,only=read,loss=100%%", s->qp[0]->qp_num);
        tm_strike(rule);
        tm_add(r, 6, 24, 0, 4096);
        tm_recv(s, 0, 6, 32768, 64);
        tm_header(s, IBV_TMH_RNDV, 24, 0);
        tm_rvh(s, 65536, 100, s->mr->rkey);
        tm_post(s, 0, HEAD, NULL);
        need(tm_got(r, IBV_WC_TM_RECV, 1006, IBV_WC_TM_MATCH));
        need(tm_sent(s) == IBV_WC_SUCCESS); /* the FIN would come behind it */
        if (way == TO_ERR || way == TO_RESET)
            need(vt_to_state(r->qp[0], way == TO_ERR ? IBV_QPS_ERR : IBV_QPS_RESET) == 0);
        else if (way == DESTROYED && ibv_destroy_qp(r->qp[0]) == 0)
            r->qp[0] = NULL;
        struct tm_wc wc = tm_next(r);
        ok(wc.wr_id == 1006 && wc.status == (way == SILENCE ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR), what[way]);
        ok(vt_quiet(ibv_cq_ex_to_cq(r->cq)) && vt_quiet(ibv_cq_ex_to_cq(s->cq)), "that is all, and there is no FIN");
        tm_strike("");
        tm_add(r, 7, 25, 0, 64);
        need(tm_eager(s, 1, 25, 10));
        ok(tm_matched(r, 7, 25, 10), "another QP goes on");
    }
    tm_replace(p, 0, &tm_usual);
}

/* No receive takes the FIN: its QP fails, and no completion reports that. */
static void no_inbox(struct tm_pair *p)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_how once = tm_usual;
    once.rnr_retry = 1;
    tm_replace(p, 0, &once);
    tm_add(r, 8, 26, 0, 4096);
    tm_header(s, IBV_TMH_RNDV, 26, 0);
    tm_rvh(s, 65536, 100, s->mr->rkey);
    tm_post(s, 0, HEAD, NULL);
    ok(tm_got(r, IBV_WC_TM_RECV, 1008, IBV_WC_TM_MATCH) && tm_got(r, IBV_WC_TM_RECV, 1008, IBV_WC_TM_DATA_VALID),
       "a rendezvous has its data");
    ok(vt_event(r->ctx, IBV_EVENT_QP_FATAL, r->qp[0]), "its FIN is not taken: an asynchronous event");
    int status = tm_sent(s); /* the QP has failed, so a lost ACK is not sent again */
    ok(failed(r->qp[0]) && (status == IBV_WC_SUCCESS || (tm_lossy() && status == IBV_WC_RETRY_EXC_ERR)),
       "and the QP fails");
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    tm_open(&p, a, b);
    killed(&p, a != b);
    too_long(&p);
    reading(&p);
    no_inbox(&p);
    tm_close(&p);
}

int main(int argc, char **argv)
{
    VT_OWN("packets that the daemon loses for a test");
    if (argc > 1)
        return be_sender();
    self = argv[0];
    return tm_everywhere(test);
}
