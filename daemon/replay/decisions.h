// SPDX-License-Identifier: BSD-2-Clause
/* The decisions of a recorded run: which packets faults strike. Looks up the decisions that were planned, and writes
 * down those that are made. Other code decides by rules (fault/fault.h), and applies the decisions (loop/tx.c).
 *
 * Each device has its own struct decisions, used by one thread. All devices of a daemon write to the same memory. */
#ifndef PUMICE_DAEMON_REPLAY_DECISIONS_H
#define PUMICE_DAEMON_REPLAY_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/fault/fault.h"
#include "daemon/replay/stream.h"
#include "wire/cm_msg.h"

#define CM_KINDS (CM_APR - CM_REQ + 1)

struct decisions {
    struct pm_decisions_page *page; /* NULL: off, and the other members are not used */
    size_t size; /* bytes of the memory */
    struct pm_decision *recorded; /* in the memory */
    uint32_t capacity;
    struct planned {
        struct pm_decision decision;
        uint8_t *met; /* in the memory */
    } * planned; /* of this device, in the order of their packets */
    size_t num_planned;
    bool replays; /* the planned decisions take the place of all rules for packets */
    bool receives; /* a planned decision is about a packet that arrives */
    struct resends *resends;
    uint64_t cm_sent[CM_KINDS]; /* messages of connection management so far, by kind */
    uint64_t probes_sent;
};

/* Test this before anything else. While decisions are off there is no other cost. */
static inline bool decisions_on(const struct decisions *d)
{
    return d->page != NULL;
}

/* Starts to use the memory page[0 … size), which the command has filled in, for one device of the daemon. The memory
 * must stay until decisions_fini. Returns 0, -ENOMEM, or -EINVAL with a reason in *why: the memory does not have what
 * abi_decisions.h says. Then decisions are off. */
int decisions_init(struct decisions *d, void *page, size_t size, uint8_t device, const char **why);
void decisions_fini(struct decisions *d);

/* Removes the rules from *spec that the planned decisions take the place of. May be called while decisions are off. */
void decisions_filter(const struct decisions *d, struct fault_spec *spec);

/* Fills in number and attempt of a message of connection management. */
void decisions_number_cm(struct decisions *d, struct pm_packet *p);

/* Looks up what was planned for the packet. newest: the highest number of its stream before it, as stream_number
 * returns it. Returns false if nothing was planned for it.
 *
 * When a responder acknowledges is a matter of timing. A planned ACK that is not sent, because a later one acknowledges
 * its packet, too, stands for that later one. */
bool decisions_find(struct decisions *d, const struct pm_packet *p, uint64_t newest, struct fault_verdict *v);

/* As decisions_find, for a packet that arrives: must the responder answer it with RNR NAK? */
bool decisions_refuse(struct decisions *d, const struct pm_packet *p);

/* The decision that a verdict makes about a packet. */
struct pm_decision decisions_made(const struct pm_packet *p, const struct fault_verdict *v);
/* Writes the decision down, unless it is none: the packet has no fault, or no name (packet.attempt is 0). */
void decisions_record(struct decisions *d, const struct pm_decision *made);
/* Writes down that a packet that arrived was answered with RNR NAK. */
void decisions_record_refusal(struct decisions *d, const struct pm_packet *p);

#endif
