// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/decision_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/objects/qp/qp.h"
#include "daemon/session/segment_guard.h"
#include "daemon/session/session.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

/* Pages of the memory could not be had. Then the recording lacks decisions, and the traffic goes on. */
static atomic_bool pages_lost;

int decision_memory_open(struct device *d, char why[ERROR_TEXT_MAX])
{
    int fd = d->settings->decisions_fd;
    const char *reason = "out of memory";
    struct stat st;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)PM_DECISIONS_AT) {
        snprintf(why, ERROR_TEXT_MAX, "--decisions-fd %d is no open memory file: only `pumice run` gives this option",
                 fd);
        return -EINVAL;
    }
    size_t size = (size_t)st.st_size;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        int rc = -errno;
        snprintf(why, ERROR_TEXT_MAX, "can't map the memory of --decisions-fd: %s", strerror(-rc));
        return rc;
    }
    struct guarded *guard = segment_guard_add(p, size);
    int rc = guard ? decisions_init(&d->decisions, p, size, (uint8_t)d->index, &reason) : -ENOMEM;
    if (rc) {
        segment_guard_remove(guard);
        munmap(p, size);
        snprintf(why, ERROR_TEXT_MAX, "%s", reason);
        return rc;
    }
    segment_guard_owner(guard, &pages_lost);
    d->decisions_guard = guard;
    return 0;
}

void decision_memory_close(struct device *d)
{
    void *p = d->decisions.page;
    size_t size = d->decisions.size;

    if (!decisions_on(&d->decisions))
        return;
    decisions_fini(&d->decisions);
    segment_guard_remove(d->decisions_guard);
    munmap(p, size);
}

static uint8_t stream_of(uint8_t opcode)
{
    if (op_table[opcode].properties & OP_IS_REQUEST)
        return PM_STREAM_REQUEST;
    return op_table[opcode].properties & OP_IS_RESPONSE ? PM_STREAM_RESPONSE : PM_STREAM_CNP;
}

/* Fills in the part of a name that says which packet of which QP it is. False: the QP is unknown. */
static bool name_of_qp(struct device *d, uint32_t qpn, uint32_t psn, struct pm_packet *p, uint64_t *newest)
{
    struct qp *qp = qp_find(d->engine, qpn);
    struct client_qp *q = qp ? qp_owner(qp) : NULL;

    if (!q)
        return false;
    p->program = q->session ? q->session->number : 0;
    *newest =
        stream_number(&q->streams, d->decisions.resends, qp_first_psn(qp, p->stream != PM_STREAM_REQUEST), psn, p);
    return true;
}

/* The same for a packet that a device sends from PROBE_QPN: a probe, or a SACK of one of its QPs. */
static bool name_of_probe(struct device *d, const struct tx_pkt *t, const uint8_t *bth, struct pm_packet *p,
                          uint64_t *newest)
{
    struct sack sack;
    struct pkt pkt;

    if (pkt_decode(bth, t->len, &pkt) == PKT_OK && sack_decode(pkt.payload, pkt.payload_len, &sack)) {
        p->stream = PM_STREAM_SACK;
        return name_of_qp(d, sack.responder, sack.expected, p, newest);
    }
    p->stream = PM_STREAM_PROBE;
    p->number = ++d->decisions.probes_sent;
    p->attempt = 1;
    return true;
}

/* Fills in the name of a packet. False: it has none, because its QP is unknown. */
static bool name_packet(struct device *d, const struct tx_pkt *t, const uint8_t *bth, const struct fault_pkt *fp,
                        struct pm_packet *p, uint64_t *newest)
{
    *p = (struct pm_packet){.device = (uint8_t)d->index, .opcode = fp->opcode};
    *newest = 0;
    if (fp->cm_attribute) {
        p->stream = PM_STREAM_CM;
        p->message = fp->cm_attribute;
        decisions_number_cm(&d->decisions, p);
        return true;
    }
    if (t->src_qpn == PROBE_QPN)
        return name_of_probe(d, t, bth, p, newest);

    p->stream = stream_of(fp->opcode);
    return name_of_qp(d, t->src_qpn, t->psn, p, newest);
}

void decision_memory_decide(struct device *d, const struct tx_pkt *t, const uint8_t *bth, const struct fault_pkt *fp,
                            uint64_t now, struct fault_verdict *v, struct pm_decision *made)
{
    struct fault_verdict planned;
    struct pm_packet p;
    uint64_t newest;
    bool named = name_packet(d, t, bth, fp, &p, &newest);
    bool found = named && decisions_find(&d->decisions, &p, newest, &planned);

    *v = (struct fault_verdict){.action = FAULT_PASS};
    *made = (struct pm_decision){.strike = PM_STRIKE_NONE};
    if (fault_on(&d->fault))
        fault_decide(&d->fault, fp, now, v);
    /* Rules take the link down again in a replay. */
    if (fault_link_down(&d->fault) || fault_daemon_ends(&d->fault))
        return;
    if (found)
        *v = planned;
    if (named)
        *made = decisions_made(&p, v);
}

bool decision_memory_refuses(struct device *d, const struct fault_pkt *fp, uint64_t now)
{
    struct pm_packet p = {.device = (uint8_t)d->index, .stream = PM_STREAM_ARRIVAL, .opcode = fp->opcode};
    uint64_t newest;
    bool named = name_of_qp(d, fp->dest_qpn, fp->psn, &p, &newest);
    bool refused = named && decisions_refuse(&d->decisions, &p);

    if (!refused && fault_receives(&d->fault))
        refused = fault_refuses(&d->fault, fp, now);
    if (named && refused)
        decisions_record_refusal(&d->decisions, &p);
    return refused;
}
