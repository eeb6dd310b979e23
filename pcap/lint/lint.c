// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/capread.h"
#include "pcap/decap.h"
#include "pcap/lint/base/lint_flow.h"
#include "pcap/lint/base/lint_state.h"
#include "pcap/lint/lint_cm.h"
#include "pcap/lint/lint_packet.h"
#include "pcap/lint/lint_request.h"
#include "pcap/lint/lint_response.h"
#include "pcap/lint/lint_sack.h"
#include "pcap/lint/lint_tm.h"
#include "pcap/note.h"
#include "wire/opcode.h"

static void read_frame(struct lint *l, const struct capread_frame *f)
{
    uint8_t faults = f->comment ? note_faults(f->comment, f->comment_len) : 0;
    struct decap d;

    l->faulty |= (faults & ~NOTE_MARKED) != 0;
    if (faults & NOTE_LOST)
        return; /* it never left its host */
    switch (decap_frame(f, &d)) {
    case DECAP_ROCE:
        lint_datagram(l, f, &d);
        break;
    case DECAP_FRAGMENT:
        lint_report(l, LINT_FRAGMENT, f->number, "IP fragment; RoCEv2 packets must not be fragmented");
        break;
    case DECAP_LENGTH:
        lint_report(l, LINT_UDP_LENGTH, f->number, "the lengths of frame, IP and UDP do not agree");
        break;
    case DECAP_SHORT:
    case DECAP_LINKTYPE:
    case DECAP_OTHER:
        break;
    }
}

/* Reads all frames of the capture, judges them one by one, and makes records of them. */
static int read_all(struct lint *l, FILE *f)
{
    struct capread *c = capread_open(f, l->result->error);
    struct capread_frame frame;
    int got;

    if (!c) {
        fclose(f);
        return -EINVAL;
    }
    while ((got = capread_next(c, &frame, l->result->error)) == 1 && !l->no_memory) {
        l->result->frames++;
        read_frame(l, &frame);
    }
    l->result->lost = capread_lost(c);
    l->result->faults = capread_faults(c);
    l->faulty |= l->result->faults != 0;
    l->lost = l->result->lost != 0;
    capread_close(c);
    return got < 0 ? -EINVAL : 0;
}

/* Judges all requests and responses in the order of the capture. */
static void judge(struct lint *l)
{
    /* Packets may be lost before the place of the capture. Then a gap is not the sender's fault. */
    for (size_t i = 0; i < l->num_flows && l->faulty; i++)
        l->flows[i]->direction = PCAPNG_DIR_UNKNOWN;
    for (size_t i = 0; i < l->num_recs && !l->no_memory; i++) {
        struct flow *flow = l->flows[l->recs[i].flow];
        uint16_t properties = op_table[l->recs[i].opcode].properties;

        if (l->recs[i].flags & RECORD_IGNORED)
            continue;
        if (l->recs[i].mad)
            lint_cm_message(l, flow, (uint32_t)i);
        if (l->recs[i].sack)
            lint_sack(l, flow, (uint32_t)i);
        if (properties & OP_IS_REQUEST && flow->key.service != OP_SERVICE_UD) {
            if (lint_cm_data(l, flow, (uint32_t)i))
                lint_restart(flow);
            lint_request(l, flow, (uint32_t)i);
        } else if (properties & OP_IS_RESPONSE) {
            lint_response(l, flow, (uint32_t)i);
        }
    }
    for (size_t i = 0; i < l->num_flows && !l->no_memory; i++) {
        lint_unanswered(l, l->flows[i]);
        lint_tm_end(l, l->flows[i]);
    }
}

int lint_run(struct lint_result *out, FILE *f, const struct lint_options *options)
{
    struct lint l = {.options = options, .result = out, .faulty = options->faulty};

    memset(out, 0, sizeof(*out));
    int err = read_all(&l, f);
    lint_pair(&l);
    lint_tm_detect(&l);
    judge(&l);
    for (size_t i = 0; i < l.num_flows; i++)
        out->connections += l.flows[i]->peer && l.flows[i]->peer->index > i;
    lint_result_sort(out);
    out->packets = (uint32_t)l.num_recs;
    HASH_CLEAR(hh, l.by_key);
    for (size_t i = 0; i < l.num_flows; i++)
        lint_flow_free(l.flows[i]);
    free(l.flows);
    free(l.recs);
    free(l.tm);
    free(l.mads);
    free(l.sacks);
    lint_cm_table_free(&l.cm);
    return l.no_memory ? -ENOMEM : err;
}
