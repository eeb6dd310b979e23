// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/reload.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/options.h"

/* The threads of the devices read the settings, too, but none that is marked OPTION_RELOAD. So this needs no lock. */
void reload_apply(struct server *sv, const struct settings *fresh, char others[ERROR_TEXT_MAX])
{
    struct settings *current = sv->settings;
    bool new_peers = memcmp(&current->peers, &fresh->peers, sizeof(fresh->peers)) != 0;
    bool new_faults = strcmp(current->fault, fresh->fault) != 0 || current->seed != fresh->seed;
    bool new_timing = current->ack_delay_us != fresh->ack_delay_us || current->min_timeout_us != fresh->min_timeout_us;
    char why[FAULT_WHY_MAX];
    size_t len = 0;

    others[0] = 0;
    for (const struct option_def *o = options; o->name; o++) {
        if (o->flags & OPTION_RELOAD)
            option_copy(o, current, fresh);
        else if (!option_is_equal(o, current, fresh) && len < ERROR_TEXT_MAX)
            len += (size_t)snprintf(others + len, ERROR_TEXT_MAX - len, "%s%s", len ? ", " : "", o->name);
    }
    log_set_levels(&current->log_levels);
    log_set_json(current->log_json);
    quota_set_limits(&sv->quota, &current->quota);
    if (new_peers)
        device_set_admit(&sv->devices, &current->peers);
    if (new_timing)
        device_set_tune(&sv->devices, &(struct device_timing){current->ack_delay_us, current->min_timeout_us});
    /* Faults that `pumice fault` has set stay if the configuration says the same as before. The specification was
     * checked when it was read, so this can't fail. */
    if (new_faults)
        device_set_inject(&sv->devices,
                          &(struct device_faults){.spec = current->fault, .script = "", .seed = current->seed}, why);
}

static void on_reload(struct ev_loop *loop, ev_signal *w, int revents)
{
    static struct settings fresh;
    struct reload *r = w->data;
    char text[ERROR_TEXT_MAX] = "";

    (void)loop;
    (void)revents;
    if (!r->read) {
        log_warn("SIGHUP: there is no configuration file to read again");
        return;
    }
    if (r->read(&fresh, text) != 0) {
        log_warn("SIGHUP: the configuration stays as it was, because the file has an error: %s", text);
        return;
    }
    reload_apply(r->server, &fresh, text);
    log_info("configuration read again%s", text[0] ? "; some of it waits for a restart" : "");
    if (text[0])
        log_warn("configuration: these options can't change before a restart: %s", text);
}

void reload_watch(struct reload *r, struct server *sv, int (*read)(struct settings *fresh, char why[ERROR_TEXT_MAX]))
{
    r->server = sv;
    r->read = read;
    ev_signal_init(&r->sighup, on_reload, SIGHUP);
    r->sighup.data = r;
    ev_signal_start(sv->loop, &r->sighup);
}
