// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_QP
#include "daemon/monitor/error_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/json.h"
#include "daemon/base/log.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/session.h"
#include "wire/opcode.h"
#include "wire/syndrome.h"

/* --- tables ------------------------------------------------------------------------------------ */

/* clang-format off */
static const char *const event_names[REPORT_KINDS] = {
    [REPORT_NAK_SENT] = "nak_sent",
    [REPORT_NAK_RCVD] = "nak_received",
    [REPORT_TIMEOUT]  = "timeout",
    [REPORT_DROP]     = "drop",
    [REPORT_ERROR]    = "error",
};
static const struct cause {
    const char *name, *text;
    enum log_level level;
} drops[DROP_CAUSES] = {
    [DROP_UNKNOWN_QP] = {"unknown_qp",   "there is no such queue pair", LOG_LEVEL_INFO},
    [DROP_STATE]      = {"bad_state",    "the queue pair is not ready to receive", LOG_LEVEL_INFO},
    [DROP_PKEY]       = {"bad_pkey",     "its P_Key is not that of the default partition (0xffff or 0x7fff)", LOG_LEVEL_WARN},
    [DROP_SOURCE]     = {"bad_source",   "its source address is not that of the queue pair's peer", LOG_LEVEL_WARN},
    [DROP_SOURCE_QP]  = {"bad_source_qp", "it comes from a queue pair of this daemon that is not the queue pair's peer", LOG_LEVEL_WARN},
    [DROP_DESTINATION] = {"bad_destination", "it went to another address of the device than the queue pair's", LOG_LEVEL_WARN},
    [DROP_OPCODE]     = {"bad_opcode",   "its opcode belongs to another service", LOG_LEVEL_WARN},
    [DROP_PSN]        = {"bad_psn",      "its PSN is farther from the expected one than any window; it may be forged", LOG_LEVEL_WARN},
    [DROP_RESPONSE]   = {"bad_response", "it is a response to no outstanding request", LOG_LEVEL_INFO},
    [DROP_QKEY]       = {"bad_qkey",     "its Q_Key is not the queue pair's", LOG_LEVEL_WARN},
    [DROP_NO_RECV]    = {"no_recv",      "no receive request is posted", LOG_LEVEL_INFO},
    [DROP_REFUSED]    = {"refused",      "it is not allowed, too long, or part of a message that was dropped", LOG_LEVEL_INFO},
    [DROP_ICRC]       = {"bad_icrc",     "its ICRC is wrong", LOG_LEVEL_WARN},
    [DROP_NOT_LISTED] = {"not_listed",   "its source address is not in the list of peers (option peers)", LOG_LEVEL_INFO},
    [DROP_PORT]       = {"bad_port",     "it does not come from UDP port 4791, as those of a Pumice daemon; it is likely forged", LOG_LEVEL_WARN},
    [DROP_MALFORMED]  = {"malformed",    "it can't be decoded", LOG_LEVEL_WARN},
}, errors[ERROR_CAUSES] = {
    [ERROR_PROGRAM]   = {"program",      "its program set it to this state", LOG_LEVEL_DEBUG},
    [ERROR_PEER_NAK]  = {"peer_nak",     "the peer refused a request", LOG_LEVEL_WARN},
    [ERROR_RETRY]     = {"retry",        "the peer did not answer, and all retries are used up", LOG_LEVEL_WARN},
    [ERROR_RNR_RETRY] = {"rnr_retry",    "the peer had no receive request posted, and all RNR retries are used up", LOG_LEVEL_WARN},
    [ERROR_LOCAL]     = {"local",        "one of its own requests could not be executed (key, range, or memory)", LOG_LEVEL_WARN},
    [ERROR_RESPONSE]  = {"bad_response", "a response did not fit its request", LOG_LEVEL_WARN},
    [ERROR_REFUSED]   = {"refused",      "it refused a request of the peer", LOG_LEVEL_WARN},
    [ERROR_RECV]      = {"recv",         "a receive request is too small for the message, or its memory can't be written", LOG_LEVEL_WARN},
    [ERROR_MEMORY]    = {"memory",       "memory of the program that must be written is gone", LOG_LEVEL_WARN},
};
/* clang-format on */

static const char *nak_name(uint8_t syndrome)
{
    static const char *const names[] = {"PSN sequence error", "invalid request", "remote access error",
                                        "remote operational error", "invalid RD request"};

    if ((syndrome & AETH_KIND_MASK) == AETH_RNR)
        return "RNR (no receive request)";
    if (syndrome >= NAK_PSN_SEQUENCE && syndrome <= NAK_INVALID_RD)
        return names[syndrome - NAK_PSN_SEQUENCE];
    return "unknown";
}

static const char *status_name(uint8_t status)
{
    static const char *const names[] = {
        [WC_LOC_LEN_ERR] = "local length error",
        [WC_LOC_QP_OP_ERR] = "local QP operation error",
        [WC_LOC_PROT_ERR] = "local protection error",
        [WC_WR_FLUSH_ERR] = "flushed",
        [WC_MW_BIND_ERR] = "memory window bind error",
        [WC_BAD_RESP_ERR] = "bad response error",
        [WC_LOC_ACCESS_ERR] = "local access error",
        [WC_REM_INV_REQ_ERR] = "remote invalid request error",
        [WC_REM_ACCESS_ERR] = "remote access error",
        [WC_REM_OP_ERR] = "remote operation error",
        [WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
        [WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
    };

    return status < sizeof(names) / sizeof(names[0]) && names[status] ? names[status] : NULL;
}

static const struct cause *cause_of(const struct report *r)
{
    if (r->kind == REPORT_DROP && r->cause < DROP_CAUSES)
        return &drops[r->cause];
    if (r->kind == REPORT_ERROR && r->cause < ERROR_CAUSES)
        return &errors[r->cause];
    return NULL;
}

/* True for a NAK that the protocol recovers from. */
static bool is_usual(uint8_t syndrome)
{
    return syndrome == NAK_PSN_SEQUENCE || (syndrome & AETH_KIND_MASK) == AETH_RNR;
}

/* --- text of a report -------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t left;
};

static void say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(t->at, t->left, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n >= t->left)
        n = (int)t->left - 1;
    t->at += n;
    t->left -= (size_t)n;
}

static void say_what(struct text *t, const struct report *r)
{
    const struct cause *c = cause_of(r);

    switch (r->kind) {
    case REPORT_NAK_SENT:
        say(t, "sent NAK %s", nak_name(r->syndrome));
        break;
    case REPORT_NAK_RCVD:
        say(t, "got NAK %s", nak_name(r->syndrome));
        break;
    case REPORT_TIMEOUT:
        say(t, "timeout: no answer; %u retries left", r->retries_left);
        break;
    default:
        say(t, "%s: %s", r->kind == REPORT_DROP ? "packet dropped" : "failed", c ? c->text : "?");
        break;
    }
    if (r->kind == REPORT_ERROR && r->syndrome)
        say(t, " (%s)", nak_name(r->syndrome));
    if (r->status && status_name(r->status))
        say(t, "; its completion says: %s", status_name(r->status));
}

const char *report_text(const struct report *r, char out[REPORT_TEXT_MAX])
{
    struct text t = {out, REPORT_TEXT_MAX};

    out[0] = 0;
    say_what(&t, r);
    if (r->kind == REPORT_ERROR && r->cause == ERROR_PROGRAM)
        return out;
    if (r->has_packet && op_table[r->opcode].name)
        say(&t, "; %s %s", op_service_name(r->opcode), op_table[r->opcode].name);
    say(&t, "; PSN %u", r->psn);
    if (r->expected != r->psn && r->qpn && r->kind != REPORT_DROP)
        say(&t, ", %u expected here", r->expected);
    if (r->has_key)
        say(&t, ", key 0x%" PRIx32 ", address 0x%" PRIx64, r->key, r->va);
    return out;
}

json_t *report_json(const struct report *r)
{
    const struct cause *c = cause_of(r);
    char text[REPORT_TEXT_MAX], gid[ADDR_TEXT_MAX];
    json_t *o = json_pack("{s:s}", "event", r->kind < REPORT_KINDS ? event_names[r->kind] : "?");

    if (c)
        json_object_set_new(o, "cause", json_string(c->name));
    if (r->syndrome)
        json_object_set_new(o, "syndrome", json_integer(r->syndrome));
    if (r->status)
        json_object_set_new(o, "status", json_integer(r->status));
    if (r->has_packet)
        json_object_set_new(o, "opcode", json_integer(r->opcode));
    json_object_set_new(o, "qpn", json_integer(r->qpn));
    json_object_set_new(o, "peer_qpn", json_integer(r->peer_qpn));
    json_object_set_new(o, "peer", json_string(gid_text(r->peer, gid)));
    json_object_set_new(o, "psn", json_integer(r->psn));
    json_object_set_new(o, "expected", json_integer(r->expected));
    if (r->has_key) {
        json_object_set_new(o, "key", json_hex(r->key));
        json_object_set_new(o, "va", json_hex(r->va));
    }
    if (r->kind == REPORT_TIMEOUT)
        json_object_set_new(o, "retries_left", json_integer(r->retries_left));
    json_object_set_new(o, "reason", json_string(report_text(r, text)));
    return o;
}

/* --- the log ----------------------------------------------------------------------------------- */

static void write_line(struct device *d, const struct report *r, enum log_area area, enum log_level level)
{
    const struct qp *qp = qp_find(d->engine, r->qpn);
    const struct client_qp *q = qp ? qp_owner(qp) : NULL;
    char what[REPORT_TEXT_MAX], gid[ADDR_TEXT_MAX], line[REPORT_TEXT_MAX + 256];
    json_t *fields = report_json(r);

    report_text(r, what);
    gid_text(r->peer, gid);
    if (r->kind == REPORT_DROP && !q)
        snprintf(line, sizeof(line), "%s: from %s for QP 0x%06x: %s", d->name, gid, r->qpn, what);
    else
        snprintf(line, sizeof(line), "%s: QP 0x%06x (%s, pid %d), peer 0x%06x at %s: %s", d->name, r->qpn,
                 q && q->session ? q->session->comm : "XRC target", q && q->session ? (int)q->session->cred.pid : 0,
                 r->peer_qpn, gid, what);
    json_object_set_new(fields, "device", json_string(d->name));
    log_write_fields(area, level, fields, line);
    json_decref(fields);
}

static void log_one(struct device *d, const struct report *r)
{
    /* One rate limit for each kind and cause, so that many reports of one cause do not hide the others. */
    static struct log_rate rates[REPORT_KINDS][16];
    const struct cause *c = cause_of(r);
    enum log_area area = r->kind == REPORT_DROP ? LOG_PACKET : LOG_QP;
    enum log_level level = LOG_LEVEL_INFO;
    unsigned slot = c ? r->cause : r->syndrome == NAK_PSN_SEQUENCE ? 0 : is_usual(r->syndrome) ? 1 : 2;

    if (c)
        level = c->level;
    else if (r->kind != REPORT_TIMEOUT && !is_usual(r->syndrome))
        level = LOG_LEVEL_WARN;
    if (r->kind < REPORT_KINDS && log_wants(area, level, &rates[r->kind][slot]))
        write_line(d, r, area, level);
}

void error_log_take(struct device *d)
{
    struct report r;

    while (engine_pop_report(d->engine, &r))
        log_one(d, &r);
}

void error_log_undecoded(struct device *d, enum drop_cause cause, const uint8_t from[16], const uint8_t *p, size_t len)
{
    struct report r = {.kind = REPORT_DROP, .cause = (uint8_t)cause};
    struct pkt pkt;

    memcpy(r.peer, from, sizeof(r.peer));
    if (pkt_decode(p, len, &pkt) == PKT_OK) {
        report_packet(&r, &pkt);
        r.qpn = pkt.dest_qpn;
    } else if (pkt_peek(p, len, &pkt)) {
        r.has_packet = true;
        r.opcode = pkt.opcode;
        r.psn = pkt.psn;
        r.qpn = pkt.dest_qpn;
    }
    log_one(d, &r);
}

void error_log_bad_peer(struct device *d, const struct tx_pkt *t, const uint8_t *p)
{
    struct report r = {.kind = REPORT_DROP, .cause = DROP_SOURCE_QP, .peer_qpn = t->src_qpn};
    struct pkt pkt;

    memcpy(r.peer, d->gids.entry[t->av->sgid_index].gid, sizeof(r.peer));
    if (pkt_decode(p, t->len, &pkt) == PKT_OK) {
        report_packet(&r, &pkt);
        r.qpn = pkt.dest_qpn;
    }
    log_one(d, &r);
}
