// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/lint/lint_priv.h"

void *lint_grow(struct lint *l, void *array, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 16;
    void *bigger;

    if (n < *cap)
        return array;
    bigger = realloc(array, more * size);
    if (!bigger) {
        l->no_memory = true;
        return NULL;
    }
    *cap = more;
    return bigger;
}

static void tell(struct lint *l, enum lint_rule rule, enum lint_severity severity, uint32_t frame, const char *format,
                 va_list ap)
{
    struct lint_result *r = l->result;
    struct lint_finding *f = lint_grow(l, r->findings, r->n, &l->cap_findings, sizeof(*f));

    if (!f)
        return;
    r->findings = f;
    f += r->n++;
    f->rule = rule;
    f->severity = severity;
    f->frame = frame;
    vsnprintf(f->text, sizeof(f->text), format, ap);
    if (severity == LINT_ERROR)
        r->errors++;
    else
        r->notes++;
}

void lint_tell(struct lint *l, enum lint_rule rule, uint32_t frame, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    tell(l, rule, lint_rules[rule].severity, frame, format, ap);
    va_end(ap);
}

void lint_tell_unless(struct lint *l, bool excused, enum lint_rule rule, uint32_t frame, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    tell(l, rule, excused ? LINT_NOTE : lint_rules[rule].severity, frame, format, ap);
    va_end(ap);
}

static void read_frame(struct lint *l, const struct capread_frame *f)
{
    struct decap d;

    switch (decap_frame(f, &d)) {
    case DECAP_ROCE:
        lint_datagram(l, f, &d);
        break;
    case DECAP_FRAGMENT:
        lint_tell(l, LINT_FRAGMENT, f->number, "an IP fragment; RoCEv2 packets are never fragmented");
        break;
    case DECAP_LENGTH:
        lint_tell(l, LINT_UDP_LENGTH, f->number, "the lengths of frame, IP and UDP contradict each other");
        break;
    case DECAP_SHORT:
    case DECAP_LINKTYPE:
    case DECAP_OTHER:
        break;
    }
}

/* All frames to records. */
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
    l->lost = l->result->lost != 0;
    capread_close(c);
    return got < 0 ? -EINVAL : 0;
}

static void judge(struct lint *l)
{
    /* Where packets get lost before they are seen, gaps are not their sender's. */
    for (size_t i = 0; i < l->num_halves && l->options->faulty; i++)
        l->halves[i]->direction = PCAPNG_DIR_UNKNOWN;
    for (size_t i = 0; i < l->num_recs && !l->no_memory; i++) {
        struct half *h = l->halves[l->recs[i].half];
        uint16_t properties = op_table[l->recs[i].opcode].properties;

        if (l->recs[i].flags & REC_IGNORED)
            continue;
        if (properties & OP_IS_REQUEST && h->key.service != OP_SERVICE_UD)
            lint_request(l, h, (uint32_t)i);
        else if (properties & OP_IS_RESPONSE)
            lint_response(l, h, (uint32_t)i);
    }
    for (size_t i = 0; i < l->num_halves && !l->no_memory; i++) {
        lint_unanswered(l, l->halves[i]);
        lint_tm_end(l, l->halves[i]);
    }
}

static int by_frame(const void *a, const void *b)
{
    const struct lint_finding *x = a, *y = b;

    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    return (int)x->rule - (int)y->rule;
}

int lint_run(struct lint_result *out, FILE *f, const struct lint_options *options)
{
    struct lint l = {.options = options, .result = out};
    int err;

    memset(out, 0, sizeof(*out));
    err = read_all(&l, f);
    lint_pair(&l);
    lint_tm_detect(&l);
    judge(&l);
    for (size_t i = 0; i < l.num_halves; i++)
        out->connections += l.halves[i]->peer && l.halves[i]->peer->index > i;
    if (out->n)
        qsort(out->findings, out->n, sizeof(*out->findings), by_frame);
    out->packets = (uint32_t)l.num_recs;
    HASH_CLEAR(hh, l.by_key);
    for (size_t i = 0; i < l.num_halves; i++)
        lint_half_free(l.halves[i]);
    free(l.halves);
    free(l.recs);
    free(l.tm);
    return l.no_memory ? -ENOMEM : err;
}

void lint_free(struct lint_result *r)
{
    free(r->findings);
    memset(r, 0, sizeof(*r));
}
