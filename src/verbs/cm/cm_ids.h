// SPDX-License-Identifier: BSD-2-Clause
/* The IDs and the multicast memberships of a channel, as this process knows them.
 *
 * The daemon keeps them, too. This copy is for the time after the daemon has died. The library then tells each ID that
 * its device is gone, and says how many events it has reported of an ID that ends. (librdmacm waits until the program
 * has acknowledged so many.)
 *
 * The caller holds the lock of connection management. */
#ifndef PUMICE_SRC_VERBS_CM_CM_IDS_H
#define PUMICE_SRC_VERBS_CM_CM_IDS_H

#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of enum rdma_cm_event_type, which only librdmacm's header defines. */
enum vb_cm_event {
    VB_CM_EVENT_CONNECT_REQUEST = 4,
    VB_CM_EVENT_DEVICE_REMOVAL = 11,
    VB_CM_EVENT_MULTICAST_JOIN = 12,
    VB_CM_EVENT_MULTICAST_ERROR = 13,
};

struct vb_cm_id {
    uint32_t id;
    uint32_t owner; /* of a membership: the ID that joined */
    uint64_t uid; /* the number that the program gave to it; 0: none */
    uint32_t reported; /* events so far */
};

struct vb_cm_id_list {
    struct vb_cm_id *entry; /* in the order of their numbers */
    size_t n, size;
};

struct vb_cm_ids {
    struct vb_cm_id_list ids;
    struct vb_cm_id_list memberships;
    uint32_t listener; /* the ID that got the last connection request */
    uint64_t untold; /* after the daemon's death: IDs from this number on do not know that their device is gone */
};

/* Frees what is in ids. */
void vb_cm_ids_fini(struct vb_cm_ids *ids);

/* Adds an ID, or a membership of owner. If memory is short, it is not added. */
void vb_cm_ids_add(struct vb_cm_ids *ids, uint32_t id, uint64_t uid);
void vb_cm_ids_join(struct vb_cm_ids *ids, uint32_t id, uint64_t uid, uint32_t owner);
/* Sets the number of the program. */
void vb_cm_ids_name(struct vb_cm_ids *ids, uint32_t id, uint64_t uid);
/* Removes an ID with its memberships, or a membership. Returns false if there is none. Fills the number of events. */
bool vb_cm_ids_destroy(struct vb_cm_ids *ids, uint32_t id, uint32_t *reported);
bool vb_cm_ids_leave(struct vb_cm_ids *ids, uint32_t id, uint32_t *reported);
/* Moves an ID with its memberships to another channel. */
void vb_cm_ids_move(struct vb_cm_ids *from, struct vb_cm_ids *to, uint32_t id);

/* Counts an event that the daemon has reported. A connection request adds its ID. */
void vb_cm_ids_count(struct vb_cm_ids *ids, const struct rdma_ucm_event_resp *event);
/* Makes the event that the device of an ID is gone. Each ID gets one such event, in the order of their numbers; an ID
 * without a number of the program gets none. Returns false if no more IDs are left. *more: there is another one. */
bool vb_cm_ids_removal(struct vb_cm_ids *ids, struct rdma_ucm_event_resp *event, bool *more);

#endif
