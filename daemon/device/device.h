// SPDX-License-Identifier: BSD-2-Clause
/* A device: one interface with its addresses, an engine, a thread with its loop, and the sessions bound to it. From
 * device_start to device_stop, all data of the device belong to its thread. Other threads use device_do. */
#ifndef PUMICE_DAEMON_DEVICE_DEVICE_H
#define PUMICE_DAEMON_DEVICE_DEVICE_H

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/base/activity.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/handles.h"
#include "daemon/base/unkind.h"
#include "daemon/client_mem/mem_backend.h"
#include "daemon/core/engine.h"
#include "daemon/device/connections.h"
#include "daemon/device/control_turns.h"
#include "daemon/device/cpu_yield.h"
#include "daemon/device/device_user.h"
#include "daemon/device/gid_table.h"
#include "daemon/device/mad_box.h"
#include "daemon/device/mailbox.h"
#include "daemon/device/memory_strikes.h"
#include "daemon/device/settings.h"
#include "daemon/device/slice_box.h"
#include "daemon/device/usage.h"
#include "daemon/fault/fault.h"
#include "daemon/net/address.h"
#include "daemon/net/gso.h"
#include "daemon/net/io_counters.h"
#include "daemon/net/netdev.h"
#include "daemon/net/udp.h"
#include "daemon/netem/delay_queue.h"
#include "daemon/netem/netem.h"
#include "daemon/replay/decisions.h"
#include "daemon/threads/loop_activity.h"

struct quota;
struct session;
struct cq;
struct client_qp;
struct client_srq;
struct capture;
struct pings;
struct path_check;
struct mcast_group;
struct completion_delay;
TAILQ_HEAD(mcast_group_list, mcast_group);
TAILQ_HEAD(session_list, session);
TAILQ_HEAD(cq_list, cq);
TAILQ_HEAD(client_qp_list, client_qp);
TAILQ_HEAD(client_srq_list, client_srq);

/* The engine stretches shorter QP timeouts to this value, but at most to four times their length. The value is 4096 ns
 * << 16, a quarter of a second. Most programs set timeout 14 and 7 retries. With these a QP fails after half a second,
 * and on a busy machine the peer's daemon may not run for that long. After stretching, the QP fails after two
 * seconds. */
#define DEVICE_CROWD_TIMEOUT_NS (4096ull << 16)

/* Bytes of one batch of packets. It has room for four GSO runs of the maximum length (gso.h), each with the first two
 * packets of a message before it. It is small enough to stay in the cache between gathering and sending. */
#define DEVICE_TX_BYTES (4u * (GSO_MAX_BYTES + 2 * (4096 + 32)))

struct device {
    struct activity activity; /* of its thread */
    const struct settings *settings;
    struct control_turns control_turns; /* of its sessions */
    struct quota *quota; /* of the users; NULL: nothing is counted (tests) */
    struct device_limits limits; /* of its profile */
    unsigned index; /* in the settings, and in pm_list_rep */
    char name[PM_NAME_MAX];
    const char *control_path; /* of the control socket, beside which the files of sysfs are; NULL: there are none */
    union addr addr; /* the first address; port 0 */
    uint8_t gid[16]; /* of the first address */
    struct gid_table gids;
    uint64_t guid; /* host order */
    struct netdev netdev;
    uint8_t active_mtu; /* enum ibv_mtu */
    /* Connections of all devices of the daemon. NULL: no packet leaves this device for another QP of the daemon. */
    struct connections *connections;
    struct connections_view connections_view;

    struct engine_config config;
    struct engine *engine;
    void *engine_mem;
    size_t engine_mem_size;
    uint8_t *reorder_mem; /* for engine_config.reorder_mem, in the buffers of the copier; NULL: selective is off */
    struct copier copier; /* its buffers hold all packets */
    struct mem_backend memory;

    struct udp udp; /* not open in tests without a network */
    struct io_counters io;
    struct fault fault;
    struct unkind unkind;
    struct completion_delay *completion_delay; /* NULL: completions are not held back */
    struct decisions decisions; /* of a recording, see loop/decision_memory.h */
    struct guarded *decisions_guard; /* of their memory */
    struct delay_queue delay_queue;
    const struct netem *netem; /* the emulated network; NULL: none */
    uint64_t net_hops; /* links that packets have passed */
    const struct rx_meta *rx_meta; /* of the packet that the engine is given; set only while fault_receives */
    bool link_down; /* programs were told that a fault has taken the link down */
    struct tx_batch tx;
    struct peer_list peers; /* the addresses that packets may come from */
    uint32_t peers_version; /* counts the changes of peers; not 0 */
    struct pings *pings; /* connectivity checks; NULL: there was none yet */
    struct path_check *path_check; /* automatic connectivity checks; NULL: there was none yet */
    struct peer_identities *peer_identities; /* what is known of peers; NULL: nothing yet */
    struct capture *captures; /* running captures; NULL: none */

    struct device_user_list users;
    struct session_list sessions;
    unsigned segment_losses; /* segment_guard_losses() when the sessions were looked at */
    unsigned num_sessions;
    struct session_list ending; /* those of them whose objects are being freed (control/session_end.h) */
    uint32_t copies_lost; /* of copier.lost, those that were looked at (session/stuck_memory.h) */
    struct memory_strikes memory_strikes;
    uint32_t next_session; /* number of the next session */
    struct usage usage;
    unsigned num_mrs, num_mws; /* of all sessions */
    /* PDs of all sessions, because PD numbers must be unique in the device. */
    struct handles pds;
    struct handles xrcds; /* XRC domains, by number */
    struct mcast_group_list groups; /* multicast groups with members on this device */
    unsigned num_groups;
    uint32_t next_group; /* number of the next group */
    struct handles targets; /* XRC target queue pairs, by QP number */
    uint32_t created_targets; /* so far */

    struct cq_list dirty_cqs; /* have new entries that the client was not notified of yet */
    struct cq_list held_cqs; /* have an event that moderation delays */
    uint64_t held_due; /* when the first event of held_cqs is due, or earlier; NEVER: none */
    struct client_qp_list backlog; /* have requests in their send ring that were not read yet */
    struct client_qp_list failed; /* went to ERR or have an invalid ring, and were not handled yet */
    struct client_srq_list failed_srqs; /* SRQs with an invalid ring, not handled yet */
    struct client_srq_list waiting_tm_srqs; /* SRQs with list operations in their ring that were not executed yet */

    /* Used by the loop only. */
    struct ev_loop *loop;
    struct mailbox mailbox;
    struct slice_box slices; /* status work of other threads */
    struct mad_box mads; /* to and from connection management */
    struct takeover *thread; /* threads/takeover.h */
    pthread_attr_t thread_attr;
    bool running, stop;
    _Atomic bool asked_to_stop; /* device_stop was called. The thread that watches copies reads it */
    ev_io udp_readable, udp_writable, timer_readable, port_changed;
    struct loop_activity loop_activity; /* of `loop` */
    struct wait_limit wait_limit;
    ev_idle ends; /* active while `ending` is not empty */
    uint64_t ends_at; /* when the next slice of these ends may begin */
    int timer_fd; /* CLOCK_MONOTONIC; armed only while the loop sleeps */
    int port_fd; /* rtnetlink; negative: none */
    uint64_t now; /* time of the current pass */
    bool delivered_few; /* the last pass received a few packets, and published completions */
    uint64_t last_work; /* time of the latest pass that had something to do */
    uint64_t bulk_until; /* until then, more bulk data is expected from the network */
    /* State of cpu_yield.h. */
    struct cpu_yield cpu_yield;
    /* Where its clients should be, as in pm_session_page (loop/cpu_advice.h). */
    uint32_t clients_apart, clients_beside, clients_many;
};

/* Do packets between the device and this GID stay within the device, because the GID is its own? */
static inline bool device_keeps_inside(const struct device *d, const uint8_t gid[16])
{
    return !d->settings->loopback_wire && gid_table_has(&d->gids, gid);
}

/* Runs a call in the device's thread and waits for it, for a bounded time (mailbox.h). If the thread does not run, runs it
 * here. */
enum mailbox_result device_do(struct device *d, struct mailbox_call *call);
/* As device_do, without waiting. The call belongs to the mailbox, which drops it. */
void device_post(struct device *d, struct mailbox_call *call);
/* Runs one slice of a job in the device's thread (slice_box.h). True: it has run. False: the thread did not answer within
 * wait_ns, and the job is no longer the caller's. If the thread does not run, runs the slice here. */
bool device_slice(struct device *d, struct slice_job *job, uint64_t wait_ns);

/* Programs see the GID table as the profile has it. If it has each address twice, entry i of the table has the indexes 2i
 * (RoCE v1) and 2i + 1 (RoCE v2). Both stand for the same packets, which are of RoCE v2. */

/* The length of the GID table that programs see. There are addresses in the first entries only. */
static inline uint32_t device_gid_table_len(const struct device *d)
{
    const uint32_t least = (unsigned)ENGINE_MAX_GIDS << d->limits.gid_v1;

    return d->limits.gid_tbl_len > least ? d->limits.gid_tbl_len : least;
}

/* The entry of the table that belongs to an index of a program. It may be beyond the table. */
static inline uint32_t device_gid_entry(const struct device *d, uint32_t index)
{
    return index >> d->limits.gid_v1;
}

/* Is an index of a program that of an entry of RoCE v1? */
static inline bool device_gid_is_v1(const struct device *d, uint32_t index)
{
    return d->limits.gid_v1 && index % 2 == 0;
}

/* The index that a program has for an entry, of RoCE v2. */
static inline uint32_t device_gid_index(const struct device *d, uint32_t entry)
{
    return entry << d->limits.gid_v1 | d->limits.gid_v1;
}

/* Fills in the device's entry of pm_list_rep, which is also part of the reply to PM_OP_OPEN. */
void device_describe(const struct device *d, struct pm_device_desc *desc);
/* Sets the addresses that later packets may come from. */
void device_set_peers(struct device *d, const struct peer_list *peers);
/* As in struct settings. */
struct device_timing {
    int64_t ack_delay_us;
    uint32_t min_timeout_us;
};
void device_config_timing(struct engine_config *c, const struct device_timing *t);
/* Sets the timing of later packets. */
void device_set_timing(struct device *d, const struct device_timing *t);
/* Is the address one of the list, or one of the device itself? */
bool device_admits(const struct device *d, const uint8_t gid[16]);
/* Sets the faults of all later packets. start: when their times begin. */
void device_set_fault(struct device *d, const struct fault_spec *spec, uint64_t seed, uint64_t start);

#endif
