// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/reload.h"

#include <signal.h>
#include <string.h>

#include "daemon/base/log.h"

/* Takes over what can change while the daemon runs: log levels and format, and faults if they are others than those of `configured`,
 * which is brought up to date. False: something else has changed, too, which waits for a restart. */
static bool take_over(struct server *sv, struct settings *configured, const struct settings *fresh)
{
    char why[FAULT_WHY_MAX];
    struct settings rest = *fresh;

    /* What `pumice fault` has set meanwhile stays, unless the configuration says something new. */
    if (strcmp(configured->fault, fresh->fault) != 0 || configured->seed != fresh->seed)
        server_inject(sv, fresh->fault, fresh->seed, why); /* it was checked when it was read */
    log_set_levels(&fresh->log_levels);
    log_set_json(fresh->log_json);
    memcpy(configured->fault, fresh->fault, sizeof(configured->fault));
    configured->log_levels = fresh->log_levels;
    configured->log_json = fresh->log_json;
    configured->seed = fresh->seed;
    configured->has_seed = rest.has_seed;
    return memcmp(configured, &rest, sizeof(rest)) == 0;
}

/* Devices' threads read the options that they were started with, of which those that change here are none. */
static void on_reload(struct ev_loop *loop, ev_signal *w, int revents)
{
    struct reload *r = w->data;
    static struct settings fresh;
    char why[ERROR_TEXT_MAX] = "";

    (void)loop;
    (void)revents;
    if (!r->read) {
        log_warn("SIGHUP: there is no configuration to read again");
    } else if (r->read(&fresh, why) != 0) {
        log_warn("the configuration is not read again, because of what is wrong in it: %s", why);
    } else {
        bool all = take_over(r->server, r->server->settings, &fresh);

        log_info("configuration read again%s", all ? "" : "; some of it waits for a restart");
        if (!all)
            log_warn("the configuration has changed in what can't change before a restart");
    }
}

void reload_watch(struct reload *r, struct server *sv, int (*read)(struct settings *fresh, char why[ERROR_TEXT_MAX]))
{
    r->server = sv;
    r->read = read;
    ev_signal_init(&r->sighup, on_reload, SIGHUP);
    r->sighup.data = r;
    ev_signal_start(sv->loop, &r->sighup);
}
