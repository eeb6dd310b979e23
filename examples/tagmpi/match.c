// SPDX-License-Identifier: BSD-2-Clause
#include "examples/tagmpi/match.h"

#define FIELD(bits) ((UINT64_C(1) << (bits)) - 1)

static const uint64_t comm_mask = FIELD(TAG_COMM_BITS) << (TAG_SOURCE_BITS + TAG_TAG_BITS);
static const uint64_t source_mask = FIELD(TAG_SOURCE_BITS) << TAG_TAG_BITS;
static const uint64_t tag_mask = FIELD(TAG_TAG_BITS);

uint64_t tag_pack(unsigned comm, unsigned source, uint32_t tag)
{
    return (uint64_t)comm << (TAG_SOURCE_BITS + TAG_TAG_BITS) | (uint64_t)source << TAG_TAG_BITS | tag;
}

struct pattern tag_pattern(unsigned comm, int source, int tag)
{
    struct pattern p = {.mask = comm_mask};

    p.mask |= source == TAGMPI_ANY_SOURCE ? 0 : source_mask;
    p.mask |= tag == TAGMPI_ANY_TAG ? 0 : tag_mask;
    p.tag = tag_pack(comm, (unsigned)source & FIELD(TAG_SOURCE_BITS), (uint32_t)tag) & p.mask;
    return p;
}

unsigned tag_source(uint64_t packed)
{
    return (unsigned)((packed & source_mask) >> TAG_TAG_BITS);
}

int tag_tag(uint64_t packed)
{
    return (int)(packed & tag_mask);
}

struct tagmpi_request *match_posted(const struct request_list *posted, uint64_t tag)
{
    struct tagmpi_request *r;

    TAILQ_FOREACH (r, posted, link) {
        if (tag_matches(tag, &r->pattern))
            return r;
    }
    return NULL;
}

struct unexpected *match_unexpected(const struct unexpected_list *list, const struct pattern *p)
{
    struct unexpected *u;

    TAILQ_FOREACH (u, list, link) {
        if (tag_matches(u->tag, p))
            return u;
    }
    return NULL;
}
