// SPDX-License-Identifier: BSD-2-Clause
/* The device under test: which one it is, its features, and what is tested on Pumice alone.
 *
 * tests/verbs/run.sh tests Pumice, with daemons for each program. tests/verbs/conformance.py tests any other device,
 * with the library that the program finds. It sets these variables:
 *   PUMICE_TEST_DEVICE  the name of the device, as ibv_devices shows it
 *   PUMICE_TEST_PEER    the name of a second device of this machine, for tests between two devices
 *   PUMICE_TEST_PORT    the port of both (1)
 *   PUMICE_TEST_GID     the index of the GID of both (see vt_gid_index)
 *
 * On another device a feature that it does not report is skipped with a reason. On Pumice a missing feature is an
 * error. */
#ifndef PUMICE_TESTS_VERBS_DEVICE_H
#define PUMICE_TESTS_VERBS_DEVICE_H

#include <infiniband/verbs.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/verbs/check.h"

/* Is this a run on a chosen device? Then there are no daemons of the test. */
static inline const char *vt_chosen(void)
{
    return getenv("PUMICE_TEST_DEVICE");
}

/* Is the device Pumice's? On other devices the tests check only what the specification or a manual page demands. */
static inline bool vt_is_pumice(void)
{
    return !vt_chosen() || !strncmp(vt_chosen(), "pumice", 6);
}

static const char *vt_part_name; /* of the part that runs; NULL: the whole program */

/* Ends the part or the program: the device can't do this. On Pumice that is an error. */
static inline void vt_skip(const char *why)
{
    if (vt_is_pumice()) {
        printf("not ok - Pumice's device must not skip this: %s\n", why);
        exit(1);
    }
    if (vt_part_name)
        printf("# skipped: %s: %s\n", vt_part_name, why);
    else
        printf("skip - %s\n", why);
    fflush(stdout);
    exit(vt_part_name ? vt_failed : 77);
}

/* The program tests something of Pumice's own, with daemons for this program. (conformance.py finds this mark in the
 * source.) */
#define VT_OWN(why)                                                                                                    \
    do {                                                                                                               \
        if (vt_chosen()) {                                                                                             \
            printf("own - %s\n", why);                                                                                 \
            exit(77);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* True on Pumice. Elsewhere it counts a part that looks at something of Pumice's own. */
static inline bool vt_own(const char *what)
{
    if (!vt_is_pumice())
        printf("# own: %s\n", what);
    return vt_is_pumice();
}

/* Checks on Pumice only: a promise that goes beyond the specification. Elsewhere the condition is not evaluated. */
#define ok_pumice(held, what) ((void)(vt_own(what) && ok((held), (what))))

/* Did a call fail? rc: its result. The manual pages promise an error number, but not which one. So the number is
 * checked on Pumice only. */
static inline bool vt_fails(int rc, int error)
{
    return vt_is_pumice() ? rc == error : rc != 0;
}
/* The same for calls that make an object. The number is in errno. */
static inline bool vt_none(const void *object, int error)
{
    return !object && (!vt_is_pumice() || errno == error);
}

static inline uint8_t vt_port(void)
{
    const char *port = getenv("PUMICE_TEST_PORT");
    return (uint8_t)(port ? atoi(port) : 1);
}

static inline struct ibv_context *vt_open_named(const char *name)
{
    int num;
    struct ibv_device **list = ibv_get_device_list(&num);
    struct ibv_context *c = NULL;
    for (int i = 0; list && i < num && !c; i++)
        if (!name || !strcmp(ibv_get_device_name(list[i]), name))
            need((c = ibv_open_device(list[i])));
    if (list)
        ibv_free_device_list(list);
    return c;
}

/* The device under test. */
static inline struct ibv_context *vt_open(void)
{
    struct ibv_context *c = vt_open_named(vt_chosen());
    if (!c && vt_chosen()) {
        printf("not ok - there is no RDMA device %s; ibv_devices lists those that are there\n", vt_chosen());
        exit(1);
    }
    if (!c) {
        printf("skip - no RDMA device\n");
        exit(77);
    }
    return c;
}

static inline struct ibv_device_attr_ex vt_attr(struct ibv_context *ctx)
{
    struct ibv_device_attr_ex a;
    need(ibv_query_device_ex(ctx, NULL, &a) == 0);
    return a;
}

static inline struct ibv_port_attr vt_port_attr(struct ibv_context *ctx)
{
    struct ibv_port_attr a;
    need(ibv_query_port(ctx, vt_port(), &a) == 0);
    return a;
}

/* A higher number is a better GID to connect with; 0: it can't be used. Global addresses come before link-local ones,
 * and RoCE v2 before RoCE v1. */
static inline int vt_gid_rank(const struct ibv_gid_entry *e)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (e->port_num != vt_port())
        return 0;
    if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
        return e->gid_type == IBV_GID_TYPE_IB ? 2 : 1;
    if (!memcmp(e->gid.raw, mapped, sizeof(mapped)))
        return 5;
    return e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80 ? 3 : 4;
}

/* The index of the GID to connect with: the one that the user wants, otherwise the best of the table. */
static inline uint8_t vt_gid_index(struct ibv_context *ctx)
{
    struct ibv_gid_entry table[256];
    const char *wish = getenv("PUMICE_TEST_GID");
    if (wish)
        return (uint8_t)atoi(wish);
    ssize_t n = ibv_query_gid_table(ctx, table, 256, 0);
    int best = 0, index = 0;
    for (ssize_t i = 0; i < n; i++)
        if (vt_gid_rank(&table[i]) > best) {
            best = vt_gid_rank(&table[i]);
            index = (int)table[i].gid_index;
        }
    return (uint8_t)index;
}

static inline union ibv_gid vt_gid(struct ibv_context *ctx)
{
    union ibv_gid gid;
    need(ibv_query_gid(ctx, vt_port(), vt_gid_index(ctx), &gid) == 0);
    return gid;
}

enum vt_feature {
    VT_CONNECT, /* queue pairs are connected by ibv_modify_qp */
    VT_UNRELIABLE, /* UC and UD */
    VT_ATOMICS,
    VT_ATOMIC_WRITE,
    VT_FLUSH,
    VT_SRQ,
    VT_SRQ_RESIZE,
    VT_XRC,
    VT_MW,
    VT_MW_TYPE_2,
    VT_TAG_MATCHING,
    VT_MULTICAST,
    VT_ON_DEMAND,
    VT_DEVICE_MEMORY,
    VT_MODERATION,
    VT_TIMESTAMPS,
};

/* NULL: the device has the feature. Otherwise the reason, with the field that says so. */
static inline const char *vt_lacks(struct ibv_context *ctx, enum vt_feature feature)
{
    const struct ibv_device_attr_ex a = vt_attr(ctx);
    const struct ibv_device_attr *o = &a.orig_attr;
    bool iwarp = ctx->device->transport_type == IBV_TRANSPORT_IWARP;
    switch (feature) {
    case VT_CONNECT:
        return iwarp ? "rdma_cm connects queue pairs of iWARP (transport_type)" : NULL;
    case VT_UNRELIABLE:
        return iwarp ? "iWARP has no UC and no UD (transport_type)" : NULL;
    case VT_ATOMICS:
        return o->atomic_cap == IBV_ATOMIC_NONE ? "no atomics (atomic_cap)" : NULL;
    case VT_ATOMIC_WRITE: /* IB_UVERBS_DEVICE_ATOMIC_WRITE */
        return a.device_cap_flags_ex & UINT64_C(1) << 40 ? NULL : "no ATOMIC WRITE (device_cap_flags_ex)";
    case VT_FLUSH: /* IB_UVERBS_DEVICE_FLUSH_GLOBAL */
        return a.device_cap_flags_ex & UINT64_C(1) << 38 ? NULL : "no FLUSH (device_cap_flags_ex)";
    case VT_SRQ:
        return o->max_srq > 0 ? NULL : "no shared receive queues (max_srq)";
    case VT_SRQ_RESIZE:
        return o->device_cap_flags & IBV_DEVICE_SRQ_RESIZE ? NULL : "SRQs can't be resized (device_cap_flags)";
    case VT_XRC:
        return o->device_cap_flags & IBV_DEVICE_XRC ? NULL : "no XRC (device_cap_flags)";
    case VT_MW:
        return o->max_mw > 0 && o->device_cap_flags & IBV_DEVICE_MEM_WINDOW
                   ? NULL
                   : "no memory windows of type 1 (max_mw, device_cap_flags)";
    case VT_MW_TYPE_2:
        return o->max_mw > 0 && o->device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)
                   ? NULL
                   : "no memory windows of type 2 (max_mw, device_cap_flags)";
    case VT_TAG_MATCHING:
        return a.tm_caps.max_num_tags > 0 ? NULL : "no tag matching (tm_caps.max_num_tags)";
    case VT_MULTICAST:
        return o->max_mcast_grp > 0 && o->max_mcast_qp_attach > 0 ? NULL : "no multicast (max_mcast_grp)";
    case VT_ON_DEMAND:
        return a.odp_caps.general_caps & IBV_ODP_SUPPORT ? NULL : "no on-demand paging (odp_caps.general_caps)";
    case VT_DEVICE_MEMORY:
        return a.max_dm_size > 0 ? NULL : "no device memory (max_dm_size)";
    case VT_MODERATION:
        return a.cq_mod_caps.max_cq_count > 0 ? NULL : "events can't be moderated (cq_mod_caps.max_cq_count)";
    case VT_TIMESTAMPS:
        return a.completion_timestamp_mask ? NULL : "no timestamps of completions (completion_timestamp_mask)";
    }
    return "unknown feature";
}

/* Skips the rest of the part, or of the program, if the device lacks the feature. */
static inline void vt_needs(struct ibv_context *ctx, enum vt_feature feature)
{
    const char *why = vt_lacks(ctx, feature);
    if (why)
        vt_skip(why);
}

/* Skips the rest if an optional call is not there: no field says so, only its error. */
static inline bool vt_unsupported(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT;
}
static inline void vt_needs_call(bool worked, const char *call)
{
    static char why[160];
    if (worked || !vt_unsupported(errno))
        return;
    snprintf(why, sizeof(why), "%s is not supported (%s)", call, strerror(errno));
    vt_skip(why);
}

static struct ibv_context *vt_ctx; /* the device, opened for the part that runs */

#define VT_PART_SECONDS 120 /* for a part on a device that is not Pumice's, where a call may block for ever */

/* Runs a part of the program in a process of its own, with the device opened. So a part that fails does not end the
 * others. */
static inline void vt_part(const char *name, void (*part)(void))
{
    printf("# part: %s\n", name);
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        vt_part_name = name;
        vt_failed = 0;
        if (!vt_is_pumice())
            alarm(VT_PART_SECONDS);
        vt_ctx = vt_open();
        part();
        ok(ibv_close_device(vt_ctx) == 0, "the device is closed");
        exit(vt_failed);
    }
    int status;
    need(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) /* no device; after a failure it may be gone */
        exit(vt_failed ? 1 : 77);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM && !vt_is_pumice())
        printf("not ok - %s: no end after %d seconds\n", name, VT_PART_SECONDS);
    else if (WIFSIGNALED(status))
        printf("not ok - %s: signal %d (%s)\n", name, WTERMSIG(status), strsignal(WTERMSIG(status)));
    vt_failed |= status != 0;
}

#endif
