// SPDX-License-Identifier: BSD-2-Clause
/* ACKs between two hosts, counted: one ACK covers many messages, and a lost ACK costs one repeated packet that is
 * acknowledged once more and not delivered again. */
#include "tests/verbs/tag_matching/tags.h"

#define MESSAGES 1024u
#define BATCH 16u

static struct vt_end a, b;

/* A counter of the host with this control socket. */
static long counter(const char *socket, const char *name)
{
    char path[128], text[32] = "", *own = strdup(getenv("PUMICE_SOCKET"));
    snprintf(path, sizeof(path), "/sys/class/infiniband/pumice0/ports/1/hw_counters/%s", name);
    setenv("PUMICE_SOCKET", socket, 1);
    FILE *f = fopen(path, "r");
    need(f && fgets(text, sizeof(text), f));
    fclose(f);
    setenv("PUMICE_SOCKET", own, 1);
    free(own);
    return atol(text);
}

static void batch(unsigned n, bool *right)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    for (unsigned i = 0; i < n; i++)
        need(vt_end_recv(&b, i, 0, 64) == 0);
    for (unsigned i = 0; i < n; i++) {
        wr.send_flags = i + 1 == n ? IBV_SEND_SIGNALED : 0;
        need(vt_end_post(&a, &wr, 0, 8) == 0);
    }
    *right &= vt_next(a.scq).status == IBV_WC_SUCCESS;
    for (unsigned i = 0; i < n; i++)
        *right &= vt_next(b.rcq).wr_id == i;
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    const char *peer = getenv("VT_PEER_SOCKET"), *own = getenv("PUMICE_SOCKET");
    bool right = true;
    if (ca == cb)
        return; /* within a device nothing is counted as sent to a host */
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    long acks = counter(peer, "ack_sends");
    for (unsigned i = 0; i < MESSAGES; i += BATCH)
        batch(BATCH, &right);
    acks = counter(peer, "ack_sends") - acks;
    printf("# %u messages, %ld ACKs\n", MESSAGES, acks);
    ok(right, "all messages arrive, once and in order");
    ok(acks >= 1 && acks <= MESSAGES / 2, "one ACK covers several messages");

    long dups = counter(peer, "dup_recvs"), again = counter(own, "resends");
    tm_fault_at(peer, "only=ack,mask=0x1"); /* the first of 64 ACKs is lost */
    batch(1, &right);
    tm_fault_at(peer, "");
    dups = counter(peer, "dup_recvs") - dups;
    again = counter(own, "resends") - again;
    printf("# %ld packets sent again, %ld duplicates\n", again, dups);
    ok(right && vt_quiet(b.rcq), "a message whose ACK is lost completes, and is delivered once");
    ok(dups >= 1 && dups <= again, "by a repeated packet that the responder acknowledges as a duplicate");
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("counters of the daemon");
    return vt_both(test);
}
