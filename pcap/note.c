// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/note.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/cm_text.h"
#include "pcap/sack_text.h"

#define QP "QP 0x"
#define QP_DIGITS 6
#define OF " of "
#define PID "(pid "
#define WR_ID ", wr_id 0x"
#define AGAIN ", retransmission"
#define INSIDE "inside of the device"
#define BEFORE "before faults"
#define LOST_PACKETS " packets lost by faults"
/* Comes last. It is longer than a process's name, so no name contains it. */
#define STRUCK "struck by a fault: "

static const char *const fault_text[] = {"lost", "damaged", "sent twice", "late", "marked with CE"};
#define FAULTS (sizeof(fault_text) / sizeof(fault_text[0]))

static void add(char text[NOTE_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char text[NOTE_MAX], const char *format, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text + used, NOTE_MAX - used, format, ap);
    va_end(ap);
}

void note_format(const struct note *n, char text[NOTE_MAX])
{
    text[0] = 0;
    if (n->qpn)
        add(text, QP "%0*" PRIx32, QP_DIGITS, n->qpn);
    if (n->pid)
        add(text, OF "%.*s " PID "%" PRIu32 ")", NOTE_COMM, n->comm, n->pid);
    if (n->has_wr)
        add(text, WR_ID "%" PRIx64, n->wr_id);
    if (n->mad) {
        char what[CM_TEXT_MAX];

        cm_text(n->mad, what);
        add(text, "%s%s", text[0] ? ", " : "", what);
    }
    if (n->sack) {
        char what[SACK_TEXT_MAX];

        sack_text(n->sack, what);
        add(text, "%s%s", text[0] ? ", " : "", what);
    }
    if (n->retransmit)
        add(text, AGAIN);
    if (n->inside)
        add(text, "%s" INSIDE, text[0] ? ", " : "");
    if (n->before)
        add(text, "%s" BEFORE, text[0] ? ", " : "");
    if (n->faults)
        add(text, "%s" STRUCK, text[0] ? ", " : "");
    for (unsigned i = 0, sep = 0; i < FAULTS; i++) {
        if (n->faults >> i & 1)
            add(text, "%s%s", sep++ ? ", " : "", fault_text[i]);
    }
}

void note_format_lost(uint64_t n, char text[NOTE_MAX])
{
    snprintf(text, NOTE_MAX, "%" PRIu64 LOST_PACKETS, n);
}

uint64_t note_lost(const char *text, size_t len)
{
    char copy[64], *end;

    if (len >= sizeof(copy) || !len || text[0] < '0' || text[0] > '9')
        return 0;
    memcpy(copy, text, len);
    copy[len] = 0;
    uint64_t n = strtoull(copy, &end, 10);
    return strcmp(end, LOST_PACKETS) == 0 ? n : 0;
}

uint8_t note_faults(const char *text, size_t len)
{
    char copy[NOTE_MAX];
    uint8_t faults = 0;

    if (len >= sizeof(copy))
        return 0;
    memcpy(copy, text, len);
    copy[len] = 0;
    const char *at = strstr(copy, STRUCK);
    for (unsigned i = 0; at && i < FAULTS; i++)
        faults |= (uint8_t)(strstr(at + strlen(STRUCK), fault_text[i]) ? 1u << i : 0);
    return faults;
}

/* The place of the process's number. The process's name comes before it and can hold any text, so it is the last PID. */
static const char *last_pid(const char *text)
{
    const char *at = strstr(text, PID);

    while (at && strstr(at + 1, PID))
        at = strstr(at + 1, PID);
    return at;
}

void note_comm(const char *text, size_t len, char comm[NOTE_COMM + 1])
{
    const size_t begin = strlen(QP) + QP_DIGITS + strlen(OF);
    char copy[NOTE_MAX];

    comm[0] = 0;
    if (len >= sizeof(copy) || len < begin)
        return;
    memcpy(copy, text, len);
    copy[len] = 0;
    const char *at = strlen(copy) < begin ? NULL : last_pid(copy + begin);
    if (!at || at == copy + begin)
        return;
    size_t n = (size_t)(at - copy) - begin - 1; /* without the space before PID */
    snprintf(comm, NOTE_COMM + 1, "%.*s", (int)(n < NOTE_COMM ? n : NOTE_COMM), copy + begin);
}

bool note_parse(const char *text, size_t len, struct note *out)
{
    char copy[NOTE_MAX], *end;

    memset(out, 0, sizeof(*out));
    if (len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    if (strncmp(copy, QP, strlen(QP)) != 0)
        return false;
    out->qpn = (uint32_t)strtoul(copy + strlen(QP), &end, 16);
    if (end != copy + strlen(QP) + QP_DIGITS || out->qpn == 0) {
        out->qpn = 0;
        return false;
    }
    char *rest = end;
    const char *at = last_pid(rest);
    if (at) {
        out->pid = (uint32_t)strtoul(at + strlen(PID), &end, 10);
        rest = end;
    }
    at = strstr(rest, WR_ID);
    out->has_wr = at != NULL;
    if (at)
        out->wr_id = strtoull(at + strlen(WR_ID), NULL, 16);
    out->retransmit = strstr(rest, AGAIN) != NULL;
    out->inside = strstr(rest, INSIDE) != NULL;
    out->before = strstr(rest, BEFORE) != NULL;
    out->faults = note_faults(text, len);
    return true;
}
