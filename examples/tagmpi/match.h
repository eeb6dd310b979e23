// SPDX-License-Identifier: BSD-2-Clause
/* Matching in software: the format of a tag, the receives that wait, the messages that came before their receive.
 * This module does not use verbs. With the offload off, it does all the matching; with the offload on, it does the
 * program's part.
 *
 * A tag of the device is a number of 64 bits. It contains MPI's three criteria, most significant bits first:
 *
 *     communicator (12)  |  rank of the sender (20)  |  tag (32)
 *
 * A receive also has a mask. A message matches it if (tag of the message & mask) == tag of the receive. For a
 * wildcard, the bits of the field are 0 in the mask, and therefore 0 in the tag of the receive, too. */
#ifndef PUMICE_EXAMPLES_TAGMPI_MATCH_H
#define PUMICE_EXAMPLES_TAGMPI_MATCH_H

#include <infiniband/tm_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "examples/tagmpi/tagmpi.h"

enum { TAG_COMM_BITS = 12, TAG_SOURCE_BITS = 20, TAG_TAG_BITS = 32 };

/* Which messages a receive accepts. */
struct pattern {
    uint64_t tag; /* 0 in the bits that are 0 in the mask */
    uint64_t mask;
};

/* The tag of a message. */
uint64_t tag_pack(unsigned comm, unsigned source, uint32_t tag);

/* source: rank or TAGMPI_ANY_SOURCE; tag: 0 ... INT32_MAX or TAGMPI_ANY_TAG. */
struct pattern tag_pattern(unsigned comm, int source, int tag);

unsigned tag_source(uint64_t packed);
int tag_tag(uint64_t packed);

static inline bool tag_matches(uint64_t packed, const struct pattern *p)
{
    return (packed & p->mask) == p->tag;
}

/* A message that came before its receive. */
struct unexpected {
    TAILQ_ENTRY(unexpected) link;
    uint64_t tag; /* packed, host order */
    struct ibv_tmh tmh; /* as it came */
    struct ibv_rvh rvh; /* of a rendezvous, as it came; the data are still at the sender */
    uint32_t length; /* of the message's data */
    uint8_t data[]; /* of an eager message */
};

struct tagmpi_request {
    TAILQ_ENTRY(tagmpi_request) link; /* of a receive: in `posted`; later perhaps in the `fetch` list of its sender */
    bool receives;
    bool done; /* the request is complete */
    bool listed; /* of a receive: the device's list has it */
    uint32_t handle; /* in the device's list */
    uint32_t lkey; /* of buf, if a device uses it */
    uint8_t *buf;
    size_t capacity; /* bytes of buf */
    struct pattern pattern; /* of a receive */
    struct tagmpi_status status; /* of a receive, when it is matched; the length when it is done */
    struct ibv_tmh tmh; /* of a receive whose rendezvous software fetches: the headers for its FIN */
    struct ibv_rvh rvh;
};

TAILQ_HEAD(request_list, tagmpi_request);
TAILQ_HEAD(unexpected_list, unexpected);

/* The receive for a message with this tag: the one that was posted first of those that match. NULL: none matches. */
struct tagmpi_request *match_posted(const struct request_list *posted, uint64_t tag);

/* The message for a receive: the one that came first of those that match. NULL: none matches. */
struct unexpected *match_unexpected(const struct unexpected_list *list, const struct pattern *p);

#endif
