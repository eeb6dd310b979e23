// SPDX-License-Identifier: BSD-2-Clause
/* The planted faults and their expected results (IBA 9.9, verbs statuses). */
#include "tests/sim/sim.h"

#include "wire/syndrome.h"

/* clang-format off */
const struct expectation expectations[PLANT_COUNT] = {
    /* requester's status     receive's status   responder's event     NAK                   local  partly */
    [PLANT_NONE]        = {WC_SUCCESS,            WC_SUCCESS,        0,                   0,                    false, false},
    [PLANT_BAD_RKEY]    = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_OLD_RKEY]    = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_RANGE]       = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_WRAP]        = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_PD]          = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_MR_ACCESS]   = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_QP_ACCESS]   = {WC_REM_INV_REQ_ERR,    WC_SUCCESS,        EVENT_QP_REQ_ERR,    NAK_INVALID_REQUEST,  false, false},
    [PLANT_MISALIGNED]  = {WC_REM_INV_REQ_ERR,    WC_SUCCESS,        EVENT_QP_REQ_ERR,    NAK_INVALID_REQUEST,  false, false},
    [PLANT_NO_RD]       = {WC_REM_INV_REQ_ERR,    WC_SUCCESS,        EVENT_QP_REQ_ERR,    NAK_INVALID_REQUEST,  false, false},
    [PLANT_RECV_SHORT]  = {WC_REM_INV_REQ_ERR,    WC_LOC_LEN_ERR,    0,                   NAK_INVALID_REQUEST,  false, true},
    [PLANT_RECV_LKEY]   = {WC_REM_OP_ERR,         WC_LOC_PROT_ERR,   0,                   NAK_REMOTE_OPERATION, false, false},
    [PLANT_LKEY]        = {WC_LOC_PROT_ERR,       WC_SUCCESS,        0,                   0,                    true,  false},
    [PLANT_LRANGE]      = {WC_LOC_PROT_ERR,       WC_SUCCESS,        0,                   0,                    true,  false},
    [PLANT_LACCESS]     = {WC_LOC_PROT_ERR,       WC_SUCCESS,        0,                   0,                    true,  false},
    [PLANT_RNR]         = {WC_RNR_RETRY_EXC_ERR,  WC_SUCCESS,        0,                   0,                    false, true},
    [PLANT_READ_FAULT]  = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, true},
    [PLANT_LREAD_FAULT] = {WC_LOC_PROT_ERR,       WC_SUCCESS,        0,                   0,                    true,  false},
    [PLANT_WRITE_FAULT] = {WC_REM_OP_ERR,         WC_LOC_PROT_ERR,   0,                   NAK_REMOTE_OPERATION, false, true},
    [PLANT_XRC_DOMAIN]  = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_XRC_NUMBER]  = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_WINDOW]      = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, false},
    [PLANT_BIND]        = {WC_MW_BIND_ERR,        WC_SUCCESS,        0,                   0,                    true,  false},
    [PLANT_LOCAL_INV]   = {WC_LOC_QP_OP_ERR,      WC_SUCCESS,        0,                   0,                    true,  false},
    [PLANT_INVALIDATE]  = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, true},
    [PLANT_DEREG]       = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, true},
    [PLANT_REREG]       = {WC_REM_ACCESS_ERR,     WC_SUCCESS,        EVENT_QP_ACCESS_ERR, NAK_REMOTE_ACCESS,    false, true},
    [PLANT_LDEREG]      = {WC_LOC_PROT_ERR,       WC_SUCCESS,        0,                   0,                    false, true},
};
/* clang-format on */

uint8_t expected_event(const struct op *o, bool deferred)
{
    /* No completion reports this fault. */
    if (o->plant == PLANT_WRITE_FAULT && !op_takes_recv(o->opcode)) {
        return deferred ? EVENT_QP_ACCESS_ERR : EVENT_QP_FATAL;
    }
    return expectations[o->plant].event;
}

bool expect_late(const struct end *e)
{
    uint8_t plant = e->plant >= 0 ? e->op[e->plant].plant : PLANT_NONE;
    if (plant == PLANT_DEREG || plant == PLANT_REREG || plant == PLANT_LDEREG) {
        return e->op[e->plant].opcode == WR_RDMA_READ;
    }
    return plant == PLANT_READ_FAULT || (plant == PLANT_WRITE_FAULT && e->sim->sc.defer);
}

static const struct expectation *planted(const struct end *e)
{
    return e->plant >= 0 ? &expectations[e->op[e->plant].plant] : &expectations[PLANT_NONE];
}

/* The peer's wrong request has reached this end and moved it to ERR. */
static bool is_hit(const struct end *e)
{
    return planted(e->peer)->syndrome != 0 && e->qp && qp_state(e->qp) == QPS_ERR;
}

static bool peer_is_gone(const struct end *e)
{
    const struct end *p = e->peer;
    if (p->left) {
        return false; /* it was done, and its engine still acknowledges duplicates */
    }
    return p->failed || p->killed || p->closed || qp_state(p->qp) == QPS_ERR;
}

bool expect_send(const struct end *e, int index, uint8_t status)
{
    const struct expectation *x = planted(e);
    if (status == WC_WR_FLUSH_ERR) {
        return e->killed || e->rfailed || is_hit(e);
    }
    if (status == WC_RETRY_EXC_ERR) {
        return e->sim->sc.may_exhaust || peer_is_gone(e);
    }
    /* If a response before the NAK is lost, the request that waits for it fails instead, because nobody will answer
     * it any more. */
    bool waits = !e->sim->sc.lossless && index < e->plant && op_is_answered(e->op[index].opcode);
    return (index == e->plant || waits) && status == x->status &&
           (x->syndrome == 0 || e->peer->nak_sent == x->syndrome);
}

bool expect_recv(const struct end *e, int index, uint8_t status)
{
    const struct end *q = e->peer;
    if (status == WC_WR_FLUSH_ERR) {
        return e->killed || e->plant >= 0 || is_hit(e) || e->sim->sc.may_exhaust || (e->failed && peer_is_gone(e)) ||
               peer_is_gone(e);
    }
    return q->plant >= 0 && index == q->op[q->plant].recv && status == planted(q)->recv_status;
}
