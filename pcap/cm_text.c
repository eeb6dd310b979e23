// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/cm_text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/cm_msg.h"
#include "wire/gid.h"

static void add(char text[CM_TEXT_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[CM_TEXT_MAX], const char *format, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text + used, CM_TEXT_MAX - used, format, ap);
    va_end(ap);
}

const char *cm_text_port_space(uint64_t service_id)
{
    switch (service_id >> 16) {
    case CM_PS_IPOIB:
        return "IPoIB";
    case CM_PS_TCP:
        return "TCP";
    case CM_PS_UDP:
        return "UDP";
    case CM_PS_IB:
        return "IB";
    default:
        return NULL;
    }
}

/* The bytes up to the last one that is not 0. */
static unsigned used_bytes(const uint8_t *data, unsigned len)
{
    while (len && data[len - 1] == 0)
        len--;
    return len;
}

static void add_private_data(char text[CM_TEXT_MAX], const uint8_t *data, unsigned len)
{
    unsigned n = used_bytes(data, len);

    if (n)
        add(text, ", private data %u byte%s", n, n == 1 ? "" : "s");
}

static void add_address(char text[CM_TEXT_MAX], const uint8_t gid[16])
{
    char address[INET6_ADDRSTRLEN];

    if (gid_is_v4(gid))
        inet_ntop(AF_INET, gid + GID_V4_AT, address, sizeof(address));
    else
        inet_ntop(AF_INET6, gid, address, sizeof(address));
    add(text, "%s", address);
}

/* The service ID of a REQ or SIDR_REQ, and the sender that its private data name. Returns the bytes of private data that
 * the sender takes. */
static unsigned add_service(char text[CM_TEXT_MAX], uint64_t service_id, const uint8_t *private_data)
{
    const char *space = cm_text_port_space(service_id);
    struct cm_ip_header ip;

    add(text, ": service ID 0x%016" PRIx64, service_id);
    if (!space)
        return 0;
    add(text, " (%s port %u)", space, (unsigned)(service_id & 0xffff));
    if (!cm_ip_header_decode(private_data, &ip))
        return 0;
    add(text, ", from ");
    add_address(text, ip.source);
    add(text, " port %u", ip.source_port);
    return CM_IP_HEADER_LEN;
}

static const char *transport(const struct cm_req *q)
{
    static const char *const names[] = {"RC", "UC", "RD", "extended transport"};

    if (q->transport == CM_TRANSPORT_EXTENDED && q->extended_transport == CM_EXTENDED_XRC)
        return "XRC";
    return names[q->transport & 3];
}

static void add_req(char text[CM_TEXT_MAX], const struct cm_req *q)
{
    unsigned header = add_service(text, q->service_id, q->private_data);

    add(text, ", comm ID 0x%08" PRIx32 ", %s, QP 0x%06" PRIx32 ", starting PSN 0x%06" PRIx32, q->local_comm_id,
        transport(q), q->local_qpn, q->starting_psn);
    add_private_data(text, q->private_data + header, CM_REQ_PRIVATE_LEN - header);
}

static const char *answered(uint8_t answers, const char *other)
{
    return answers == CM_ANSWERS_REQ ? " of a REQ" : answers == CM_ANSWERS_REP ? " of a REP" : other;
}

static void add_ids(char text[CM_TEXT_MAX], uint32_t local, uint32_t remote)
{
    add(text, ": comm IDs 0x%08" PRIx32 ", 0x%08" PRIx32, local, remote);
}

static void add_mra(char text[CM_TEXT_MAX], const struct cm_mra *r)
{
    add(text, "%s", answered(r->answers, " of a LAP"));
    add_ids(text, r->local_comm_id, r->remote_comm_id);
    add(text, ", service timeout %.3g s", 4.096e-6 * (double)(1ull << r->service_timeout));
    add_private_data(text, r->private_data, CM_MRA_PRIVATE_LEN);
}

static void add_rej(char text[CM_TEXT_MAX], const struct cm_rej *r)
{
    add(text, "%s", answered(r->answers, ""));
    add_ids(text, r->local_comm_id, r->remote_comm_id);
    add(text, ", reason %u (%s)", r->reason, cm_reject_reason_text(r->reason));
    add_private_data(text, r->private_data, CM_REJ_PRIVATE_LEN);
}

static void add_rep(char text[CM_TEXT_MAX], const struct cm_rep *p)
{
    add_ids(text, p->local_comm_id, p->remote_comm_id);
    /* The target QP of an XRC connection is in the place of the EE context (A14). */
    add(text, ", QP 0x%06" PRIx32 ", starting PSN 0x%06" PRIx32, p->local_qpn ? p->local_qpn : p->local_eecn,
        p->starting_psn);
    add_private_data(text, p->private_data, CM_REP_PRIVATE_LEN);
}

static void add_dreq(char text[CM_TEXT_MAX], const struct cm_dreq *q)
{
    add_ids(text, q->local_comm_id, q->remote_comm_id);
    add(text, ", QP 0x%06" PRIx32 " of the receiver", q->remote_qpn);
    add_private_data(text, q->private_data, CM_DREQ_PRIVATE_LEN);
}

static void add_sidr_req(char text[CM_TEXT_MAX], const struct cm_sidr_req *q)
{
    unsigned header = add_service(text, q->service_id, q->private_data);

    add(text, ", request ID 0x%08" PRIx32, q->request_id);
    add_private_data(text, q->private_data + header, CM_SIDR_REQ_PRIVATE_LEN - header);
}

static void add_sidr_rep(char text[CM_TEXT_MAX], const struct cm_sidr_rep *p)
{
    add(text, ": request ID 0x%08" PRIx32 ", status %u (%s)", p->request_id, p->status, cm_sidr_status_text(p->status));
    if (p->status == CM_SIDR_SUCCESS)
        add(text, ", QP 0x%06" PRIx32 ", Q_Key 0x%08" PRIx32, p->qpn, p->qkey);
    add_private_data(text, p->private_data, CM_SIDR_REP_PRIVATE_LEN);
}

static void add_lap(char text[CM_TEXT_MAX], const struct cm_lap *q)
{
    add_ids(text, q->local_comm_id, q->remote_comm_id);
    add(text, ", QP 0x%06" PRIx32 " of the receiver, alternate path to ", q->remote_qpn);
    add_address(text, q->alternate.remote_gid);
    add_private_data(text, q->private_data, CM_LAP_PRIVATE_LEN);
}

static void add_apr(char text[CM_TEXT_MAX], const struct cm_apr *r)
{
    add_ids(text, r->local_comm_id, r->remote_comm_id);
    add(text, ", status %u", r->ap_status);
    add_private_data(text, r->private_data, CM_APR_PRIVATE_LEN);
}

static void add_message(char text[CM_TEXT_MAX], const struct cm_msg *m)
{
    add(text, "%s", cm_attribute_name(m->attribute));
    switch ((enum cm_attribute)m->attribute) {
    case CM_REQ:
        add_req(text, &m->req);
        break;
    case CM_MRA:
        add_mra(text, &m->mra);
        break;
    case CM_REJ:
        add_rej(text, &m->rej);
        break;
    case CM_REP:
        add_rep(text, &m->rep);
        break;
    case CM_RTU:
    case CM_DREP:
        add_ids(text, m->rtu.local_comm_id, m->rtu.remote_comm_id);
        add_private_data(text, m->rtu.private_data, CM_RTU_PRIVATE_LEN);
        break;
    case CM_DREQ:
        add_dreq(text, &m->dreq);
        break;
    case CM_SIDR_REQ:
        add_sidr_req(text, &m->sidr_req);
        break;
    case CM_SIDR_REP:
        add_sidr_rep(text, &m->sidr_rep);
        break;
    case CM_LAP:
        add_lap(text, &m->lap);
        break;
    case CM_APR:
        add_apr(text, &m->apr);
        break;
    }
}

void cm_text(const uint8_t mad[MAD_LEN], char text[CM_TEXT_MAX])
{
    struct mad_header h;
    struct cm_msg m;

    text[0] = 0;
    if (cm_msg_decode(mad, &m) == CM_DECODE_OK) {
        add_message(text, &m);
        return;
    }
    mad_decode(mad, &h);
    add(text, "MAD of class 0x%02x, version %u, method 0x%02x, attribute 0x%04x", h.mgmt_class, h.class_version,
        h.method, h.attribute_id);
}
