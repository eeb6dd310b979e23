// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/device/spread.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/verbs/base/caller.h"
#include "src/verbs/session/autostart.h"
#include "src/verbs/session/session.h"
#include "src/verbs/session/session_path.h"

/* Asks the daemon for the turn of this process. Without an answer it is 0. */
static uint32_t ask_turn(const char *path)
{
    struct pm_turn_rep rep = {0};
    struct vb_call call = {.op = PM_OP_TURN, .rep = &rep, .rep_len = sizeof(rep)};
    char why[PM_WHY_MAX];
    struct vb_session s;
    if (vb_autostart_connect_to(&s, path, why) != 0)
        return 0;
    if (vb_session_call(&s, &call) != 0)
        rep.turn = 0;
    vb_session_close(&s);
    pthread_mutex_destroy(&s.lock);
    return rep.turn;
}

/* Every later list of this process has the same device. */
static uint32_t turn_of_process(const char *path)
{
    static _Atomic uint64_t kept; /* 1 + the turn; 0: none yet */
    uint64_t now = atomic_load(&kept);
    if (now == 0) {
        uint64_t mine = (uint64_t)ask_turn(path) + 1;
        now = atomic_compare_exchange_strong(&kept, &now, mine) ? mine : now;
    }
    return (uint32_t)(now - 1);
}

void vb_spread_choose(struct pm_list_rep *rep, uint32_t *first, const char *path, const void *caller)
{
    const char *spread = getenv(PM_ENV_SPREAD);
    *first = 0;
    if (rep->num < 2 || !spread || strcmp(spread, "1") != 0 || vb_called_by_librdmacm(caller))
        return;
    long rank = vb_session_rank_on_host();
    *first = (rank >= 0 ? (uint32_t)rank : turn_of_process(path)) % rep->num;
    rep->device[0] = rep->device[*first];
    rep->num = 1;
}
