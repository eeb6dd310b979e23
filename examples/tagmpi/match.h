// SPDX-License-Identifier: BSD-2-Clause
/* Matching in software: what a tag is, which receives wait, which messages came too early. No verbs in here; with the
 * offload off this is all the matching that there is, with it on it is the part that stays with the program.
 *
 * A tag of the device is one number of 64 bits. MPI's three criteria are its bits, most significant first:
 *
 *     communicator (12)  |  rank of the sender (20)  |  tag (32)
 *
 * A receive has a mask as well; a message matches it if (tag of the message & mask) == tag of the receive. A wildcard
 * is a field whose bits are 0 in the mask, and therefore 0 in the receive's tag, too. */
#ifndef MATCH_H
#define MATCH_H

#include <infiniband/tm_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "examples/tagmpi/tagmpi.h"

enum { TAG_COMM_BITS = 12, TAG_SOURCE_BITS = 20, TAG_TAG_BITS = 32 };

/* What a receive accepts. */
struct pattern {
    uint64_t tag; /* in the mask's bits; 0 elsewhere */
    uint64_t mask;
};

/* The tag that a message carries. */
uint64_t tag_pack(unsigned comm, unsigned source, uint32_t tag);

/* source: rank or TAGMPI_ANY_SOURCE; tag: 0 ... INT32_MAX or TAGMPI_ANY_TAG. */
struct pattern tag_pattern(unsigned comm, int source, int tag);

unsigned tag_source(uint64_t packed);
int tag_tag(uint64_t packed);

static inline bool tag_matches(uint64_t packed, const struct pattern *p)
{
    return (packed & p->mask) == p->tag;
}

/* A message that nobody waited for. */
struct unexpected {
    TAILQ_ENTRY(unexpected) link;
    uint64_t tag; /* packed, host order */
    struct ibv_tmh tmh; /* as it came */
    struct ibv_rvh rvh; /* of a rendezvous, as it came; its data is still at the sender */
    uint32_t length; /* of the message's data */
    uint8_t data[]; /* of an eager message */
};

struct tagmpi_request {
    TAILQ_ENTRY(tagmpi_request) link; /* receive: in `posted`, later perhaps in the queue of its peer's fetches */
    bool receives;
    bool done; /* wait may return */
    bool listed; /* receive: it stands in the device's list */
    uint32_t handle; /* there */
    uint32_t lkey; /* of buf, as far as a device gets to see it */
    uint8_t *buf;
    size_t capacity; /* bytes of buf */
    struct pattern pattern; /* receive */
    struct tagmpi_status status; /* receive, when it is matched; the length when it is done */
    struct ibv_tmh tmh; /* receive of a rendezvous that software fetches: the headers, for its FIN */
    struct ibv_rvh rvh;
};

TAILQ_HEAD(request_list, tagmpi_request);
TAILQ_HEAD(unexpected_list, unexpected);

/* The receive that a message with this tag goes to: of those that match the one posted first. NULL: none matches. */
struct tagmpi_request *match_posted(const struct request_list *posted, uint64_t tag);

/* The message for a receive: of those that match the one that came first. NULL: none matches. */
struct unexpected *match_unexpected(const struct unexpected_list *list, const struct pattern *p);

#endif
