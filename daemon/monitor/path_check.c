// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/monitor/path_check.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/control_msg.h"
#include "daemon/threads/file_thread.h"
#include "wire/pumice/probe.h"

enum half_of {
    SMALL,
    LARGE,
    HALVES,
};
/* In the order of the exit codes of `pumice ping`. */
enum path_verdict {
    V_OK,
    V_TRYING,
    V_LARGE_LOST,
    V_SMALL_LOST,
    V_BOTH_LOST,
};
static const char *const verdict_names[] = {"ok", "trying", "large_lost", "small_lost", "both_lost"};

struct path {
    uint8_t gid[16];
    uint8_t sgid_index; /* of the QP whose connection began the check */
    uint8_t verdict; /* enum path_verdict */
    bool refused; /* ICMP says that no process listens there */
    uint32_t size; /* payload of the large probes, in bytes */
    /* The longest IP packet that a router on the way forwards. 0: no router has reported one. */
    uint32_t mtu;
    uint32_t tries;
    /* The probes of one size. */
    struct half {
        uint64_t token, sent; /* of the last probe; sent: ns */
        /* ns. 0: not known, because the answer belongs to an earlier probe than the last. */
        uint64_t rtt;
        bool arrived;
    } half[HALVES];
    int pid; /* of the first process that used the path */
    char comm[16];
};
struct path_check {
    struct device *device;
    ev_timer timer; /* runs while a path is checked */
    uint32_t n, cap;
    struct path *path;
};

static void on_timer(struct ev_loop *loop, ev_timer *w, int revents);

static struct path_check *of_device(struct device *d)
{
    struct path_check *c = d->path_check;

    if (c)
        return c;
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->device = d;
    ev_timer_init(&c->timer, on_timer, PATH_CHECK_TRY_S, PATH_CHECK_TRY_S);
    c->timer.data = c;
    d->path_check = c;
    return c;
}

void path_check_fini(struct device *d)
{
    struct path_check *c = d->path_check;

    if (!c)
        return;
    ev_timer_stop(d->loop, &c->timer);
    free(c->path);
    free(c);
    d->path_check = NULL;
}

static struct path *find(const struct path_check *c, const uint8_t gid[16])
{
    for (uint32_t i = 0; c && i < c->n; i++) {
        if (memcmp(c->path[i].gid, gid, sizeof(c->path[i].gid)) == 0)
            return &c->path[i];
    }
    return NULL;
}

static struct path *add(struct path_check *c, const uint8_t gid[16])
{
    uint32_t cap = c->cap ? 2 * c->cap : 16;
    struct path *p;

    if (c->n == PATH_CHECK_MAX)
        return NULL;
    if (c->n == c->cap) {
        p = realloc(c->path, cap * sizeof(*p));
        if (!p)
            return NULL;
        c->path = p;
        c->cap = cap;
    }
    p = &c->path[c->n++];
    *p = (struct path){.verdict = V_TRYING};
    memcpy(p->gid, gid, sizeof(p->gid));
    return p;
}

/* --- verdicts ---------------------------------------------------------------------------------- */

static const char *what_fails(const struct path *p)
{
    switch (p->verdict) {
    case V_LARGE_LOST:
        return "small packets are answered, packets as long as the path MTU makes them are not";
    case V_SMALL_LOST:
        return "large packets are answered, small ones are not";
    default:
        return p->refused ? "no process listens on its UDP port 4791" : "neither small nor large packets are answered";
    }
}

static const char *what_to_do(const struct path *p)
{
    switch (p->verdict) {
    case V_LARGE_LOST:
        return "compare the MTUs of both hosts and of the network between them, or give both daemons a smaller --mtu";
    case V_SMALL_LOST:
        return "look for a firewall or for packet loss";
    default:
        return p->refused
                   ? "is pumiced running there, on that address?"
                   : "is pumiced running there, and do firewalls let UDP port 4791 pass? (NICs and soft-RoCE don't "
                     "answer these probes)";
    }
}

static json_t *describe(const struct path *p)
{
    json_t *o = json_pack("{s:s, s:i, s:i}", "verdict", verdict_names[p->verdict], "size", (int)p->size, "tries",
                          (int)p->tries);

    for (unsigned i = 0; i < HALVES; i++) {
        if (p->half[i].rtt)
            json_object_set_new(o, i == SMALL ? "small_us" : "large_us", json_real((double)p->half[i].rtt / 1e3));
    }
    if (p->mtu)
        json_object_set_new(o, "mtu", json_integer(p->mtu));
    json_object_set_new(o, "program", json_string(p->comm));
    json_object_set_new(o, "pid", json_integer(p->pid));
    return o;
}

json_t *path_check_json(const struct device *d, uint32_t i)
{
    const struct path_check *c = d->path_check;
    char text[ADDR_TEXT_MAX];

    if (!c || i >= c->n)
        return NULL;
    json_t *o = describe(&c->path[i]);
    json_object_set_new(o, "gid", json_string(gid_text(c->path[i].gid, text)));
    return o;
}

struct line {
    const char *file, *text;
    size_t len;
};

/* Writes the line with one write, because daemons may share the file. */
static void append_line(void *arg)
{
    const struct line *l = arg;
    int fd = open(l->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, l->text, l->len) < 0)
        log_warn("connectivity map %s: %s", l->file, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void write_line(const struct device *d, json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
    struct line l = {.file = d->settings->path_check_map, .text = text, .len = text ? strlen(text) + 1 : 0};

    if (!text) {
        log_warn("connectivity map %s: %s", l.file, strerror(ENOMEM));
        return;
    }
    text[l.len - 1] = '\n'; /* in place of the final NUL */
    file_thread_do(append_line, &l);
    free(text);
}

static void add_to_map(const struct device *d, const struct path *p)
{
    char text[ADDR_TEXT_MAX], stamp[40];
    time_t now = time(NULL);
    union addr peer;
    struct tm tm;

    if (!d->settings->path_check_map[0])
        return;
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
    const union addr *own = &d->gids.entry[p->sgid_index].addr;
    json_t *o = json_pack("{s:s, s:s, s:s}", "time", stamp, "device", d->name, "address", addr_text(own, text));
    if (gid_to_addr(p->gid, own, &peer))
        json_object_set_new(o, "peer", json_string(addr_text(&peer, text)));
    json_t *rest = describe(p);
    json_object_update(o, rest);
    json_decref(rest);
    write_line(d, o);
    json_decref(o);
}

static void give_up_one(void *obj, void *ctx)
{
    const struct path *p = ctx;
    struct client_qp *q = obj;
    struct qp_attr attr;

    qp_query(q->qp, &attr);
    if (q->type == IBV_QPT_UD || attr.state < QPS_RTR || attr.state >= QPS_ERR ||
        memcmp(attr.av.dgid, p->gid, sizeof(p->gid)) != 0)
        return;
    if (p->verdict == V_LARGE_LOST && 128u << attr.path_mtu < p->size)
        return; /* its packets are shorter than the lost ones */
    q->unreachable = what_fails(p);
    client_qp_mark_failed(q);
}

static void decide(struct path_check *c, struct path *p)
{
    const bool small = p->half[SMALL].arrived, large = p->half[LARGE].arrived;
    struct device *d = c->device;
    const struct session *s;
    char text[ADDR_TEXT_MAX], limit[80] = "";

    p->verdict = small && large ? V_OK : small ? V_LARGE_LOST : large ? V_SMALL_LOST : V_BOTH_LOST;
    add_to_map(d, p);
    if (p->verdict == V_OK) {
        log_info("device %s: %s receives packets of path MTU %u", d->name, gid_text(p->gid, text), p->size);
        return;
    }
    if (p->verdict == V_LARGE_LOST && p->mtu)
        snprintf(limit, sizeof(limit), " (a router on the way forwards at most %u bytes)", p->mtu);
    log_warn("device %s: connectivity of %s, path MTU %u, after %u tries: %s%s; %s. Use `pumice ping` for details",
             d->name, gid_text(p->gid, text), p->size, p->tries, what_fails(p), limit, what_to_do(p));
    if (d->settings->path_check != PATH_CHECK_ENFORCE)
        return;
    TAILQ_FOREACH (s, &d->sessions, link)
        handles_each(&s->qps, give_up_one, p);
}

/* --- probes ------------------------------------------------------------------------------------ */

static void send_probe(struct path_check *c, struct path *p, unsigned which)
{
    struct half *h = &p->half[which];
    struct av av = {.hop_limit = 64, .sgid_index = p->sgid_index};

    memcpy(av.dgid, p->gid, sizeof(av.dgid));
    h->sent = clock_ns();
    /* If the engine has no room, this try counts as a lost packet. */
    engine_check(c->device->engine, &av, which == SMALL ? PROBE_LEN : p->size, p->tries, h->token);
}

static void try_again(struct path_check *c, struct path *p)
{
    p->tries++;
    for (unsigned i = 0; i < HALVES; i++) {
        if (!p->half[i].arrived)
            send_probe(c, p, i);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct path_check *c = w->data;
    unsigned open = 0;

    (void)revents;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->path[i].verdict != V_TRYING)
            continue;
        if (c->path[i].tries >= c->device->settings->path_check_tries) {
            decide(c, &c->path[i]);
            continue;
        }
        try_again(c, &c->path[i]);
        open++;
    }
    if (!open)
        ev_timer_stop(loop, w);
}

uint64_t path_check_token(void)
{
    uint64_t token = 0;

    if (getrandom(&token, sizeof(token), GRND_NONBLOCK) != (ssize_t)sizeof(token))
        token = clock_ns();
    return token ? token : 1;
}

static void begin(struct path_check *c, struct path *p, uint32_t mtu, const struct session *s)
{
    memset(p->half, 0, sizeof(p->half));
    p->verdict = V_TRYING;
    p->size = mtu;
    p->tries = p->mtu = 0;
    p->refused = false;
    p->pid = (int)s->cred.pid;
    snprintf(p->comm, sizeof(p->comm), "%s", s->comm);
    for (unsigned i = 0; i < HALVES; i++)
        p->half[i].token = path_check_token();
    if (!ev_is_active(&c->timer)) {
        ev_now_update(c->device->loop); /* the loop's time may be old */
        ev_timer_again(c->device->loop, &c->timer);
    }
    try_again(c, p);
}

int path_check_use(struct session *s, const uint8_t gid[16], uint8_t sgid_index, uint32_t mtu, struct control_reply *rp)
{
    struct device *d = s->device;
    char text[ADDR_TEXT_MAX];

    if (d->settings->path_check == PATH_CHECK_OFF || gid_table_has(&d->gids, gid))
        return 0;
    struct path_check *c = of_device(d);
    struct path *p = find(c, gid);
    if (!p)
        p = c ? add(c, gid) : NULL;
    if (!p)
        return 0; /* the table of paths is full */
    uint8_t verdict = p->verdict;
    if (p->tries && (verdict == V_TRYING || verdict == V_OK) && mtu <= p->size)
        return 0;
    p->sgid_index = sgid_index;
    begin(c, p, mtu, s);
    if (d->settings->path_check != PATH_CHECK_ENFORCE || verdict <= V_TRYING)
        return 0;
    return control_fail(rp, -EHOSTUNREACH, "the connectivity check of %s failed before; it is being repeated",
                        gid_text(gid, text));
}

bool path_check_answer(struct device *d, const struct check *answer, uint64_t now)
{
    struct path_check *c = d->path_check;

    for (uint32_t i = 0; c && i < c->n; i++) {
        struct path *p = &c->path[i];

        for (unsigned k = 0; k < HALVES; k++) {
            struct half *h = &p->half[k];

            if (h->token != answer->token)
                continue;
            /* Ignore an answer from another address: QPs also drop packets that do not come from their peer's
             * address. */
            if (memcmp(answer->peer, p->gid, sizeof(p->gid)) != 0 || h->arrived)
                return true;
            h->arrived = true;
            h->rtt = answer->sequence == p->tries && now > h->sent ? now - h->sent : 0;
            if (p->verdict == V_TRYING && p->half[SMALL].arrived && p->half[LARGE].arrived)
                decide(c, p);
            return true;
        }
    }
    return false;
}

void path_check_trouble(struct device *d, const uint8_t gid[16], int err, uint32_t mtu)
{
    struct path *p = find(d->path_check, gid);

    if (p && err == EMSGSIZE)
        p->mtu = mtu;
    else if (p && err == ECONNREFUSED)
        p->refused = true;
}
