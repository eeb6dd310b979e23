// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/base/quota.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->entered = false)
#include <uthash.h>

/* clang-format off */
static const struct kind {
    const char *name; /* in the option and in the status */
    const char *text; /* in messages */
    /* Those that the daemon keeps for such an object. A session has its socket, its pidfd, its doorbell, its pipe and the memory of its process; a
     * group has a socket in each address family. */
    uint8_t descriptors;
    bool per_device;
    int exhausted; /* the error when the daemon has no more; 0: the capacity is no limit */
    const char *cause; /* of that */
} kinds[QUOTA_KINDS] = {
    [QUOTA_SESSIONS]     = {"sessions",     "sessions",              7, false, 0,      NULL},
    [QUOTA_CONNECTIONS]  = {"connections",  "unopened connections",  1, false, EUSERS, "a fixed limit"},
    [QUOTA_PDS]          = {"pds",          "protection domains",    0, true,  0,      NULL},
    [QUOTA_QPS]          = {"qps",          "queue pairs",           0, true,  0,      NULL},
    [QUOTA_CQS]          = {"cqs",          "completion queues",     0, false, 0,      NULL},
    [QUOTA_SRQS]         = {"srqs",         "shared receive queues", 0, true,  0,      NULL},
    [QUOTA_MRS]          = {"mrs",          "memory regions",        0, true,  0,      NULL},
    [QUOTA_MWS]          = {"mws",          "memory windows",        0, true,  0,      NULL},
    [QUOTA_CHANNELS]     = {"channels",     "completion channels",   2, false, 0,      NULL},
    [QUOTA_XRCDS]        = {"xrcds",        "XRC domains",           1, true,  0,      NULL},
    [QUOTA_GROUPS]       = {"groups",       "multicast groups",      2, true,  0,      NULL},
    [QUOTA_CM_CONNECTIONS] = {"cm-connections", "connections to connection management", 1, false, 0, NULL},
    [QUOTA_CM_CHANNELS]  = {"cm-channels",  "event channels of connection management", 1, false, 0, NULL},
    [QUOTA_CM_IDS]       = {"cm-ids",       "IDs of connection management", 0, false, ENOMEM, "a fixed limit"},
    [QUOTA_MAPPINGS]     = {"mappings",     "memory mappings",       0, false, ENOMEM, "vm.max_map_count"},
    [QUOTA_DESCRIPTORS]  = {"descriptors",  "open files",            0, false, EMFILE, "RLIMIT_NOFILE"},
    [QUOTA_BYTES]        = {"bytes",        "bytes of queues",       0, false, 0,      NULL},
};
/* clang-format on */

struct quota_user {
    uid_t uid;
    bool entered; /* in the hash table */
    uint32_t charges; /* not released yet */
    struct quota_cell cell[QUOTA_KINDS][PM_DEVICES_MAX];
    struct {
        uint64_t next; /* the time of the next line in the log */
        uint32_t left_out; /* lines since the last one */
    } log[QUOTA_KINDS];
    UT_hash_handle hh;
};

const char *quota_kind_name(enum quota_kind kind)
{
    return kinds[kind].name;
}

/* --- the option -------------------------------------------------------------------------------- */

static bool parse_limit(const char *text, size_t len, uint64_t *out)
{
    static const char suffixes[] = "KMG";
    char word[32], *end;
    const char *suffix;

    if (len == 0 || len >= sizeof(word))
        return false;
    memcpy(word, text, len);
    word[len] = 0;
    *out = strcmp(word, "auto") == 0 ? QUOTA_AUTO : QUOTA_NONE;
    if (*out == QUOTA_AUTO || strcmp(word, "none") == 0)
        return true;
    if (!isdigit((unsigned char)word[0]))
        return false;
    errno = 0;
    *out = strtoull(word, &end, 10);
    suffix = *end ? strchr(suffixes, *end) : NULL;
    if (errno || *out > UINT32_MAX * UINT64_C(1024) || (*end && (!suffix || end[1])))
        return false;
    *out <<= suffix ? 10 * (suffix - suffixes + 1) : 0;
    return true;
}

/* Returns QUOTA_KINDS for "all", and -1 for an unknown name. */
static int kind_named(const char *text, size_t len)
{
    for (int i = 0; i < QUOTA_KINDS; i++) {
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, text, len) == 0)
            return i;
    }
    return len == 3 && memcmp(text, "all", len) == 0 ? QUOTA_KINDS : -1;
}

int quota_limits_parse(const char *text, struct quota_limits *out)
{
    bool named[QUOTA_KINDS] = {false};
    uint64_t limit, all = QUOTA_AUTO;

    while (*text) {
        size_t len = strcspn(text, ","), name = strcspn(text, "=,");
        int kind = name < len ? kind_named(text, name) : -1;

        if (kind < 0 || !parse_limit(text + name + 1, len - name - 1, &limit))
            return -EINVAL;
        if (kind == QUOTA_KINDS) {
            all = limit;
        } else {
            out->of[kind] = limit;
            named[kind] = true;
        }
        text += len;
        if (*text && !*++text)
            return -EINVAL; /* a comma at the end */
    }
    for (unsigned i = 0; i < QUOTA_KINDS; i++) {
        if (!named[i])
            out->of[i] = all;
    }
    return 0;
}

/* --- limits ------------------------------------------------------------------------------------ */

void quota_init(struct quota *q, const struct quota_limits *limits, const uint64_t capacity[QUOTA_KINDS])
{
    memset(q, 0, sizeof(*q));
    pthread_mutex_init(&q->lock, NULL);
    q->limits = *limits;
    memcpy(q->capacity, capacity, sizeof(q->capacity));
    q->self = geteuid();
}

void quota_fini(struct quota *q)
{
    assert(!q->users);
    pthread_mutex_destroy(&q->lock);
}

void quota_set_limits(struct quota *q, const struct quota_limits *limits)
{
    pthread_mutex_lock(&q->lock);
    q->limits = *limits;
    pthread_mutex_unlock(&q->lock);
}

bool quota_is_exempt(const struct quota *q, uid_t uid)
{
    return uid == 0 || uid == q->self;
}

/* The present limit of the user. */
static uint64_t limit_of(const struct quota *q, const struct quota_user *u, unsigned kind, unsigned scope)
{
    uint64_t others = q->total[kind][scope] - u->cell[kind][scope].used, capacity = q->capacity[kind];

    if (quota_is_exempt(q, u->uid))
        return QUOTA_NONE;
    if (q->limits.of[kind] != QUOTA_AUTO)
        return q->limits.of[kind];
    uint64_t share = others < capacity ? (capacity - others) / 2 : 0;
    return share > capacity / QUOTA_FLOOR ? share : capacity / QUOTA_FLOOR;
}

/* --- charging ---------------------------------------------------------------------------------- */

/* An amount of a kind. */
struct item {
    unsigned kind, scope;
    uint64_t amount;
};
#define ITEMS_MAX 2 /* of one charge */

static unsigned object_items(const struct quota_owner *o, enum quota_kind object, struct item item[ITEMS_MAX])
{
    const struct kind *k = &kinds[object];

    item[0] = (struct item){object, k->per_device ? o->device : 0, 1};
    item[1] = (struct item){QUOTA_DESCRIPTORS, 0, k->descriptors};
    return k->descriptors ? 2 : 1;
}

static unsigned memory_items(uint32_t mappings, uint64_t bytes, struct item item[ITEMS_MAX])
{
    item[0] = (struct item){QUOTA_BYTES, 0, bytes};
    item[1] = (struct item){QUOTA_MAPPINGS, 0, mappings};
    return mappings ? 2 : 1;
}

static struct quota_user *find_or_add(struct quota *q, uid_t uid)
{
    struct quota_user *u;

    HASH_FIND(hh, q->users, &uid, sizeof(uid), u);
    if (u)
        return u;
    u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->uid = uid;
    u->entered = true;
    HASH_ADD(hh, q->users, uid, sizeof(u->uid), u);
    if (u->entered)
        return u;
    free(u);
    return NULL;
}

static void drop_if_idle(struct quota *q, struct quota_user *u)
{
    if (u->charges)
        return;
    HASH_DEL(q->users, u);
    free(u);
}

/* A request that is refused. The log line is written when the lock is no longer held. */
struct refusal {
    int error; /* 0: the request is granted */
    const struct kind *kind;
    uint64_t used, limit;
    bool log;
    uint32_t left_out;
};

static void refuse(struct quota_user *u, const struct item *it, struct refusal *r)
{
    uint64_t now = clock_ns();

    r->kind = &kinds[it->kind];
    u->cell[it->kind][it->scope].refused++;
    r->log = u->log[it->kind].next <= now;
    r->left_out = u->log[it->kind].left_out;
    u->log[it->kind].left_out++;
    if (!r->log)
        return;
    u->log[it->kind].left_out = 0;
    u->log[it->kind].next = now + QUOTA_LOG_SECONDS * NS_PER_S;
}

static void check(const struct quota *q, struct quota_user *u, const struct item *it, struct refusal *r)
{
    uint64_t used = u->cell[it->kind][it->scope].used, limit = limit_of(q, u, it->kind, it->scope);
    uint64_t total = q->total[it->kind][it->scope];

    if (it->amount > limit || used > limit - it->amount)
        *r = (struct refusal){.error = EDQUOT, .used = used, .limit = limit};
    else if (kinds[it->kind].exhausted &&
             (it->amount > q->capacity[it->kind] || total > q->capacity[it->kind] - it->amount))
        *r = (struct refusal){.error = kinds[it->kind].exhausted, .used = total, .limit = q->capacity[it->kind]};
    if (r->error)
        refuse(u, it, r);
}

static void explain(const struct refusal *r, uid_t uid, char why[QUOTA_WHY_MAX])
{
    const char *text = r->kind->text, *each = r->kind->per_device ? " on this device" : "";

    if (r->error == EDQUOT)
        snprintf(why, QUOTA_WHY_MAX,
                 "quota of user %u: %" PRIu64 " %s%s, %" PRIu64 " in use (see pumice status; option quota of pumiced)",
                 (unsigned)uid, r->limit, text, each, r->used);
    else
        snprintf(why, QUOTA_WHY_MAX, "the daemon can have no more %s: %" PRIu64 " of %" PRIu64 " are in use (%s)", text,
                 r->used, r->limit, r->kind->cause);
    if (r->log && r->left_out)
        log_warn("refused a request of uid %u: %s; %u such lines before were left out", (unsigned)uid, why,
                 r->left_out);
    else if (r->log)
        log_warn("refused a request of uid %u: %s", (unsigned)uid, why);
}

static void add(struct quota *q, struct quota_user *u, const struct item *item, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        u->cell[item[i].kind][item[i].scope].used += item[i].amount;
        q->total[item[i].kind][item[i].scope] += item[i].amount;
    }
    u->charges++;
}

static int charge(const struct quota_owner *o, const struct item *item, unsigned n, char *why)
{
    struct quota *q = o->quota;
    struct refusal r = {0};

    pthread_mutex_lock(&q->lock);
    struct quota_user *u = find_or_add(q, o->uid);
    for (unsigned i = 0; u && i < n && !r.error; i++)
        check(q, u, &item[i], &r);
    if (u && !r.error)
        add(q, u, item, n);
    else if (u)
        drop_if_idle(q, u);
    pthread_mutex_unlock(&q->lock);
    if (!u) {
        snprintf(why, QUOTA_WHY_MAX, "the daemon is out of memory");
        return -ENOMEM;
    }
    if (r.error)
        explain(&r, o->uid, why);
    return -r.error;
}

static void release(const struct quota_owner *o, const struct item *item, unsigned n)
{
    struct quota *q = o->quota;
    struct quota_user *u;

    pthread_mutex_lock(&q->lock);
    HASH_FIND(hh, q->users, &o->uid, sizeof(o->uid), u);
    assert(u && u->charges);
    for (unsigned i = 0; i < n; i++) {
        assert(u->cell[item[i].kind][item[i].scope].used >= item[i].amount);
        u->cell[item[i].kind][item[i].scope].used -= item[i].amount;
        q->total[item[i].kind][item[i].scope] -= item[i].amount;
    }
    u->charges--;
    drop_if_idle(q, u);
    pthread_mutex_unlock(&q->lock);
}

int quota_charge(const struct quota_owner *o, enum quota_kind object, char why[QUOTA_WHY_MAX])
{
    struct item item[ITEMS_MAX];

    return o->quota ? charge(o, item, object_items(o, object, item), why) : 0;
}

void quota_release(const struct quota_owner *o, enum quota_kind object)
{
    struct item item[ITEMS_MAX];

    if (o->quota)
        release(o, item, object_items(o, object, item));
}

int quota_charge_memory(const struct quota_owner *o, uint32_t mappings, uint64_t bytes, char why[QUOTA_WHY_MAX])
{
    struct item item[ITEMS_MAX];

    return o->quota ? charge(o, item, memory_items(mappings, bytes, item), why) : 0;
}

void quota_release_memory(const struct quota_owner *o, uint32_t mappings, uint64_t bytes)
{
    struct item item[ITEMS_MAX];

    if (o->quota)
        release(o, item, memory_items(mappings, bytes, item));
}

static const struct item open_file = {QUOTA_DESCRIPTORS, 0, 1};

bool quota_charge_open_file(const struct quota_owner *o)
{
    pthread_mutex_lock(&o->quota->lock);
    struct quota_user *u = find_or_add(o->quota, o->uid);
    if (u)
        add(o->quota, u, &open_file, 1);
    pthread_mutex_unlock(&o->quota->lock);
    return u != NULL;
}

void quota_release_open_file(const struct quota_owner *o)
{
    release(o, &open_file, 1);
}

uint64_t quota_excess_files(struct quota *q)
{
    uint64_t capacity = q->capacity[QUOTA_DESCRIPTORS], n = quota_total(q, QUOTA_DESCRIPTORS);

    return n > capacity ? n - capacity : 0;
}

/* --- status ------------------------------------------------------------------------------------ */

static size_t user_rows(const struct quota *q, const struct quota_user *u, struct quota_row *row)
{
    size_t n = 0;

    for (unsigned k = 0; k < QUOTA_KINDS; k++) {
        for (unsigned s = 0; s < PM_DEVICES_MAX; s++) {
            const struct quota_cell *c = &u->cell[k][s];

            if (!c->used && !c->refused)
                continue;
            if (row)
                row[n] = (struct quota_row){
                    .uid = u->uid,
                    .kind = k,
                    .device = kinds[k].per_device ? (int)s : -1,
                    .used = c->used,
                    .limit = limit_of(q, u, k, s),
                    .refused = c->refused,
                };
            n++;
        }
    }
    return n;
}

uint64_t quota_total(struct quota *q, enum quota_kind kind)
{
    uint64_t sum = 0;

    pthread_mutex_lock(&q->lock);
    for (unsigned i = 0; i < PM_DEVICES_MAX; i++)
        sum += q->total[kind][i];
    pthread_mutex_unlock(&q->lock);
    return sum;
}

struct quota_row *quota_rows(struct quota *q, size_t *num)
{
    struct quota_row *row;
    size_t n = 0;

    pthread_mutex_lock(&q->lock);
    for (const struct quota_user *u = q->users; u; u = u->hh.next)
        n += user_rows(q, u, NULL);
    row = n ? malloc(n * sizeof(*row)) : NULL;
    n = 0;
    for (const struct quota_user *u = row ? q->users : NULL; u; u = u->hh.next)
        n += user_rows(q, u, row + n);
    pthread_mutex_unlock(&q->lock);
    *num = n;
    return row;
}
