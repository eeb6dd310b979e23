// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/retry.h"

#include "daemon/core/base/min.h"
#include "daemon/core/cm/message.h"

#define FIRST_NS 250000000u
/* Our peer repeats a message after the response time and twice the packet life at the latest. An answer survives the loss
 * of one such repetition. */
#define KEEP_REPETITIONS 2u
#define KEEP_MARGIN_NS 1000000000u

void retry_start(struct cm_id *id, uint64_t now)
{
    id->retries = 0;
    id->mra_received = false;
    id->max_interval = id->response_ns;
    id->interval = min64(FIRST_NS, id->max_interval);
    id->give_up = now + id->response_ns * (id->max_retries + 1u);
    cm_id_set_timer(id, CM_TIMER_RETRY, now + id->interval);
}

void retry_stop(struct cm_id *id)
{
    if (id->timer_use == CM_TIMER_RETRY)
        cm_id_set_timer(id, CM_TIMER_NONE, NEVER);
}

void retry_wait_longer(struct cm_id *id, uint64_t service_ns, uint64_t now)
{
    uint64_t give_up = now + service_ns * (id->max_retries + 1u);
    id->mra_received = true;
    if (give_up > id->give_up)
        id->give_up = give_up;
    id->interval = id->max_interval;
    cm_id_set_timer(id, CM_TIMER_RETRY, min64(now + id->interval, id->give_up));
}

bool retry_expire(struct cm_id *id, uint64_t now)
{
    if (now >= id->give_up)
        return false;
    message_repeat(id);
    if (id->retries < UINT8_MAX)
        id->retries++;
    id->interval = min64(2 * id->interval, id->max_interval);
    cm_id_set_timer(id, CM_TIMER_RETRY, min64(now + id->interval, id->give_up));
    return true;
}

void retry_keep_answer(struct cm_id *id, uint64_t now)
{
    uint64_t wait = cm_time_ns(id->cm->cfg.response_timeout) + 2 * cm_time_ns(id->cm->cfg.packet_life);
    cm_id_set_timer(id, CM_TIMER_FORGET, now + KEEP_REPETITIONS * wait + KEEP_MARGIN_NS);
}

void retry_answer_again(struct cm_id *id, uint64_t now)
{
    message_repeat(id);
    if (id->timer_use == CM_TIMER_FORGET)
        retry_keep_answer(id, now);
}
