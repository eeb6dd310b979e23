// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/device_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/control/session_end.h"
#include "daemon/fault/fault_script.h"
#include "daemon/loop/device_setup.h"

_Static_assert(CONNECTION_SLOTS == 2 * DEVICE_MAX_QP, "as many slots as the engine's table of QPs has");

int device_set_open(struct device_set *s, const struct settings *settings, char why[ERROR_TEXT_MAX])
{
    /* Packets between QPs of this daemon pass through a socket. */
    bool hairpin = settings->devices > 1 || settings->loopback_wire;

    if (hairpin && connections_init(&s->connections, settings->devices) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return -ENOMEM;
    }
    if (settings->net[0]) {
        int rc = netem_open(settings->net, &s->netem, why);

        if (rc)
            return rc;
    }
    for (unsigned i = 0; i < settings->devices; i++) {
        struct device *d = aligned_alloc(64, (sizeof(*d) + 63) & ~(size_t)63);
        char text[ERROR_TEXT_MAX - 64] = "";
        int rc;

        if (!d) {
            snprintf(why, ERROR_TEXT_MAX, "out of memory");
            return -ENOMEM;
        }
        rc = device_init(d, settings, i, why);
        d->connections = hairpin ? &s->connections : NULL;
        d->netem = s->netem;
        s->device[s->n++] = d;
        if (rc == 0)
            rc = device_open(d, why);
        if (rc) {
            snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, why);
            snprintf(why, ERROR_TEXT_MAX, "device %s: %s", d->name, text);
            return rc;
        }
        /* In a replay, the recording says which packets the network loses and marks. */
        if (d->netem && d->decisions.replays)
            netem_keep_all(s->netem);
    }
    return 0;
}

int device_set_start(struct device_set *s, const struct settings *settings, char why[ERROR_TEXT_MAX])
{
    for (unsigned i = 0; i < s->n; i++) {
        int cpu = settings->cpus ? settings->cpu[i % settings->cpus] : -1;
        int rc = device_start(s->device[i], cpu);

        if (rc == -EINVAL && cpu >= 0) {
            snprintf(why, ERROR_TEXT_MAX, "cpus: this process may not use processor %d, or it does not exist", cpu);
            return rc;
        }
        if (rc) {
            snprintf(why, ERROR_TEXT_MAX, "cannot start a thread: %s", strerror(-rc));
            return rc == -EINVAL ? -EIO : rc;
        }
    }
    return 0;
}

void device_set_stop(struct device_set *s)
{
    for (unsigned i = 0; i < s->n; i++)
        device_stop(s->device[i]);
}

void device_set_close(struct device_set *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        session_close_all(s->device[i]);
        device_fini(s->device[i]);
        free(s->device[i]);
    }
    connections_fini(&s->connections);
    netem_close(s->netem);
    s->netem = NULL;
    s->n = 0;
}

void device_set_list(const struct device_set *s, struct pm_list_rep *rep)
{
    rep->abi_version = PM_ABI_VERSION;
    rep->num = s->n;
    rep->pid = (uint32_t)getpid();
    for (unsigned i = 0; i < s->n; i++)
        device_describe(s->device[i], &rep->device[i]);
}

struct fault_call {
    struct mailbox_call call; /* first */
    struct device *device;
    struct fault_spec spec;
    uint64_t seed, start;
};

static void run_fault(struct mailbox_call *call)
{
    struct fault_call *f = (struct fault_call *)(void *)call;

    device_set_fault(f->device, &f->spec, f->seed, f->start);
}

static void drop_fault(struct mailbox_call *call)
{
    free(call);
}

static int inject(struct device *d, const struct fault_spec *spec, uint64_t seed, uint64_t start)
{
    struct fault_call *f = malloc(sizeof(*f));

    if (!f)
        return -ENOMEM;
    *f = (struct fault_call){{.run = run_fault, .drop = drop_fault}, d, *spec, seed, start};
    enum mailbox_result result = device_do(d, &f->call);
    if (result != MAILBOX_GIVEN_UP)
        free(f);
    return result == MAILBOX_LATE ? -ETIMEDOUT : 0;
}

int device_set_inject(struct device_set *s, const struct device_faults *f, char why[FAULT_WHY_MAX])
{
    struct fault_spec parsed;
    uint64_t start = f->start ? f->start : clock_ns();
    int rc = 0;

    if (fault_parse(f->spec, &parsed, why, FAULT_WHY_MAX) != 0 ||
        fault_script_parse(f->script, f->host, f->hosts, &parsed, why, FAULT_WHY_MAX) != 0)
        return -EINVAL;
    for (unsigned i = 0; i < s->n; i++) {
        int failed = inject(s->device[i], &parsed, f->seed, start);

        if (!failed)
            continue;
        rc = failed;
        snprintf(why, FAULT_WHY_MAX, "the faults of device %s are as before: %s", s->device[i]->name,
                 rc == -ENOMEM ? "out of memory" : "its thread does not answer");
        log_warn("%s", why);
    }
    snprintf(s->fault, sizeof(s->fault), "%s", f->spec);
    snprintf(s->script, sizeof(s->script), "%s", f->script);
    s->seed = f->seed;
    log_info("faults: %s, %sseed %llu", s->fault[0] ? s->fault : "none", s->script[0] ? "a script, " : "",
             (unsigned long long)s->seed);
    return rc;
}

int device_is_late(const struct device *d, struct control_reply *rp)
{
    return control_fail(rp, -ETIMEDOUT,
                        "device %s does not answer: its thread hangs, or this machine is very busy; try again later",
                        d->name);
}

struct peers_call {
    struct mailbox_call call; /* first */
    struct device *device;
    struct peer_list peers; /* a copy, because nobody waits for the call */
};

static void run_peers(struct mailbox_call *call)
{
    struct peers_call *p = (struct peers_call *)(void *)call;

    device_set_peers(p->device, &p->peers);
}

static void drop_peers(struct mailbox_call *call)
{
    free(call);
}

void device_set_admit(struct device_set *s, const struct peer_list *peers)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct peers_call *p = malloc(sizeof(*p));

        if (!p) {
            log_warn("the list of peers of device %s is as before: out of memory", s->device[i]->name);
            continue;
        }
        *p = (struct peers_call){{.run = run_peers, .drop = drop_peers}, s->device[i], *peers};
        device_post(s->device[i], &p->call);
    }
    log_info("list of peers: %u prefixes%s", peers->n, peers->n ? "" : " (any address)");
}

struct timing_call {
    struct mailbox_call call; /* first */
    struct device *device;
    struct device_timing timing;
};

static void run_timing(struct mailbox_call *call)
{
    struct timing_call *t = (struct timing_call *)(void *)call;

    device_set_timing(t->device, &t->timing);
}

static void drop_timing(struct mailbox_call *call)
{
    free(call);
}

void device_set_tune(struct device_set *s, const struct device_timing *timing)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct timing_call *t = malloc(sizeof(*t));

        if (!t) {
            log_warn("ack-delay-us and min-timeout-us of device %s are as before: out of memory", s->device[i]->name);
            continue;
        }
        *t = (struct timing_call){{.run = run_timing, .drop = drop_timing}, s->device[i], *timing};
        device_post(s->device[i], &t->call);
    }
}
