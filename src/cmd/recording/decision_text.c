// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/recording/decision_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/common/targets.h"
#include "src/cmd/lab/address.h"
#include "wire/cm_msg.h"
#include "wire/opcode.h"

#define DELAY_MAX_NS 30000000000ll

static const char *const streams[PM_STREAMS] = {
    [PM_STREAM_REQUEST] = "request", [PM_STREAM_RESPONSE] = "response", [PM_STREAM_CNP] = "cnp",
    [PM_STREAM_ARRIVAL] = "arrival", [PM_STREAM_SACK] = "sack",         [PM_STREAM_CM] = "cm",
    [PM_STREAM_PROBE] = "probe",
};
static const char *const strikes[PM_STRIKES_END] = {
#define X(name, text) [name] = text,
    PM_STRIKES(X)
#undef X
};

static bool is_of_qp(const struct pm_packet *p)
{
    return p->stream <= PM_STREAM_SACK;
}

static bool has_random(const struct pm_decision *d)
{
    return d->strike == PM_STRIKE_DAMAGED || d->strike == PM_STRIKE_TRUNCATED;
}

static void opcode_text(uint8_t opcode, char *out, size_t size)
{
    if (op_table[opcode].name)
        snprintf(out, size, "%s %s", op_service_name(opcode), op_table[opcode].name);
    else
        snprintf(out, size, "%u", opcode);
}

/* --- writing ----------------------------------------------------------------------------------- */

struct text {
    char *p;
    size_t len, size;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(t->p + t->len, t->size - t->len, format, args);
    va_end(args);
    if (n > 0)
        t->len = t->len + (size_t)n < t->size ? t->len + (size_t)n : t->size - 1;
}

void decision_to_line(const struct host_decision *h, char out[DECISION_LINE_MAX])
{
    const struct pm_decision *d = &h->decision;
    const struct pm_packet *p = &d->packet;
    struct text t = {out, 0, DECISION_LINE_MAX};
    char opcode[64];

    opcode_text(p->opcode, opcode, sizeof(opcode));
    add(&t, "{\"host\": %u, \"device\": %u, ", h->host, p->device);
    if (is_of_qp(p))
        add(&t, "\"program\": %" PRIu32 ", \"qp\": %" PRIu32 ", \"life\": %" PRIu32 ", ", p->program, p->qp, p->life);
    add(&t, "\"stream\": \"%s\", ", streams[p->stream]);
    if (p->stream == PM_STREAM_CM)
        add(&t, "\"message\": \"%s\", ", cm_attribute_name(p->message));
    add(&t, "\"packet\": %" PRIu64 ", \"attempt\": %" PRIu32 ", \"opcode\": \"%s\"", p->number, p->attempt, opcode);
    if (d->strike)
        add(&t, ", \"fault\": \"%s\"", strikes[d->strike]);
    if (has_random(d))
        add(&t, ", \"random\": %" PRIu64, d->random);
    if (d->delay_ns)
        add(&t, ", \"delay_ns\": %" PRIu64, d->delay_ns);
    if (d->marked)
        add(&t, ", \"marked\": true");
    add(&t, "}");
}

void decision_to_sentence(const struct host_decision *h, char out[DECISION_LINE_MAX])
{
    static const char *const what[PM_STRIKES_END] = {[PM_STRIKE_NONE] = "",
                                                     [PM_STRIKE_LOST] = " is lost",
                                                     [PM_STRIKE_TWICE] = " is sent twice",
                                                     [PM_STRIKE_DAMAGED] = " is damaged",
                                                     [PM_STRIKE_TRUNCATED] = " is cut short",
                                                     [PM_STRIKE_REFUSED] = " is answered with RNR NAK"};
    const struct pm_decision *d = &h->decision;
    const struct pm_packet *p = &d->packet;
    struct text t = {out, 0, DECISION_LINE_MAX};
    char opcode[64];

    opcode_text(p->opcode, opcode, sizeof(opcode));
    add(&t, "host %u", h->host);
    if (p->device)
        add(&t, ", device %u", p->device);
    add(&t, ": ");
    if (p->stream == PM_STREAM_CM)
        add(&t, "%s number %" PRIu64, cm_attribute_name(p->message), p->number);
    else if (p->stream == PM_STREAM_PROBE)
        add(&t, "probe %" PRIu64, p->number);
    else
        add(&t, "%s %" PRIu64 " of QP %" PRIu32 " of program %" PRIu32, streams[p->stream], p->number, p->qp,
            p->program);
    if (is_of_qp(p) && p->life)
        add(&t, " (after reset %" PRIu32 ")", p->life);
    add(&t, "%s", what[d->strike]);
    if (d->delay_ns)
        add(&t, " is late by %.1f us", (double)d->delay_ns / 1000);
    if (d->marked)
        add(&t, " is marked with congestion experienced");
    add(&t, " (%s%s", opcode, p->attempt > 1 ? "" : ")");
    if (p->attempt > 1)
        add(&t, ", attempt %" PRIu32 ")", p->attempt);
}

/* --- reading ----------------------------------------------------------------------------------- */

struct reader {
    json_t *line;
    size_t used; /* members that were read */
    char *why; /* first error; "": none */
};

static void wrong(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct reader *r, const char *format, ...)
{
    va_list args;

    if (r->why[0])
        return;
    va_start(args, format);
    vsnprintf(r->why, DECISION_WHY_MAX, format, args);
    va_end(args);
}

/* A whole number from least to most. */
static uint64_t number(struct reader *r, const char *name, long long least, long long most, bool needed)
{
    json_t *v = json_object_get(r->line, name);

    r->used += v != NULL;
    if (!v && !needed)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most) {
        wrong(r, "\"%s\" is not a whole number from %lld to %lld", name, least, most);
        return 0;
    }
    return (uint64_t)json_integer_value(v);
}

/* The index of the text in a list of n names; -1: it is none of them. */
static int find_name(const char *text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (text && names[i] && names[i][0] && strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

static const char *text(struct reader *r, const char *name)
{
    json_t *v = json_object_get(r->line, name);

    r->used += v != NULL;
    return json_string_value(v);
}

static uint8_t read_opcode(struct reader *r)
{
    const char *name = text(r, "opcode");
    char candidate[64];

    /* Two opcodes are called CNP. The daemon sends the higher one. */
    for (unsigned i = 256; name && i-- > 0;) {
        opcode_text((uint8_t)i, candidate, sizeof(candidate));
        if (strcmp(name, candidate) == 0)
            return (uint8_t)i;
    }
    wrong(r, "\"opcode\" is not the name of an opcode, such as \"RC SEND Only\"");
    return 0;
}

static uint16_t read_message(struct reader *r)
{
    const char *name = text(r, "message");

    for (uint16_t a = CM_REQ; name && a <= CM_APR; a++)
        if (strcmp(name, cm_attribute_name(a)) == 0)
            return a;
    wrong(r, "\"message\" is not a message of connection management, such as \"REQ\"");
    return 0;
}

static void read_packet(struct reader *r, struct pm_packet *p)
{
    int stream = find_name(text(r, "stream"), streams, PM_STREAMS);

    if (stream < 0) {
        wrong(r, "\"stream\" is not one of request, response, cnp, arrival, sack, cm, probe");
        return;
    }
    p->stream = (uint8_t)stream;
    p->device = (uint8_t)number(r, "device", 0, DEVICES_MAX - 1, true);
    if (is_of_qp(p)) {
        p->program = (uint32_t)number(r, "program", 0, UINT32_MAX, true);
        p->qp = (uint32_t)number(r, "qp", 1, UINT32_MAX, true);
        p->life = (uint32_t)number(r, "life", 0, UINT32_MAX, true);
    }
    if (stream == PM_STREAM_CM)
        p->message = read_message(r);
    p->number = number(r, "packet", 0, INT64_MAX, true);
    p->attempt = (uint32_t)number(r, "attempt", 1, UINT32_MAX, true);
    p->opcode = read_opcode(r);
}

static void read_decision(struct reader *r, struct pm_decision *d)
{
    const char *name = text(r, "fault");
    int strike = name ? find_name(name, strikes, PM_STRIKES_END) : PM_STRIKE_NONE;
    json_t *marked = json_object_get(r->line, "marked");

    if (strike < 0) {
        wrong(r, "\"fault\" is not one of lost, twice, damaged, truncated, refused");
        return;
    }
    d->strike = (uint8_t)strike;
    if (has_random(d))
        d->random = number(r, "random", 0, INT64_MAX, true);
    d->delay_ns = number(r, "delay_ns", 0, DELAY_MAX_NS, false);
    d->marked = json_is_true(marked);
    r->used += marked != NULL;
    if (marked && !json_is_boolean(marked))
        wrong(r, "\"marked\" is not true or false");
    if ((d->packet.stream == PM_STREAM_ARRIVAL) != (d->strike == PM_STRIKE_REFUSED))
        wrong(r, "\"fault\": \"refused\" belongs to \"stream\": \"arrival\"");
    if (!d->strike && !d->delay_ns && !d->marked)
        wrong(r, "it has none of \"fault\", \"delay_ns\" and \"marked\"");
}

bool decision_from_line(const char *line, size_t len, struct host_decision *h, char why[DECISION_WHY_MAX])
{
    json_error_t error;
    struct reader r = {.line = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error), .why = why};

    memset(h, 0, sizeof(*h));
    why[0] = 0;
    if (!json_is_object(r.line)) {
        wrong(&r, "it is no JSON object%s%.100s", r.line ? "" : ": ", r.line ? "" : error.text);
    } else {
        h->host = (unsigned)number(&r, "host", 0, HOSTS_MAX - 1, true);
        read_packet(&r, &h->decision.packet);
        read_decision(&r, &h->decision);
        if (json_object_size(r.line) != r.used)
            wrong(&r, "it has a member that does not belong to it");
    }
    json_decref(r.line);
    return why[0] == 0;
}

#define COMPARE(member)                                                                                                \
    if (x->member != y->member)                                                                                        \
    return x->member < y->member ? -1 : 1

int decision_compare(const void *a, const void *b)
{
    const struct host_decision *x = a, *y = b;

    COMPARE(host);
    COMPARE(decision.packet.device);
    COMPARE(decision.packet.program);
    COMPARE(decision.packet.qp);
    COMPARE(decision.packet.life);
    COMPARE(decision.packet.stream);
    COMPARE(decision.packet.message);
    COMPARE(decision.packet.number);
    COMPARE(decision.packet.attempt);
    return 0;
}
