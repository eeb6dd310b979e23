// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_mad.h"

#include <string.h>

#include "wire/cm_msg.h"

/* The header of a MAD of connection management. */
#define STATUS_AT 4u /* status and the field of the class: reserved */
/* The bit "SAP supported" of a REQ is newer than the tables of wire/cm_msg.c. Linux defines it. */
#define REQ_SAP_AT (MAD_HEADER_LEN + 139u)
#define REQ_SAP_BIT 0x04u

static bool is_mad(const struct pkt *p)
{
    return p->dest_qpn == MAD_QPN && p->opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p->payload_len == MAD_LEN;
}

/* --- values ----------------------------------------------------------------------------------------- */

/* What is wrong with a field of a message, with its value; NULL: nothing. */
struct wrong {
    const char *what;
    uint32_t value;
};

static bool has_ip_header(uint64_t service_id, const uint8_t *private_data)
{
    struct cm_ip_header ip;
    uint64_t space = service_id >> 16;

    /* An ID of the port space IB may be a native one, whose private data are all the program's. */
    return (space != CM_PS_TCP && space != CM_PS_UDP && space != CM_PS_IPOIB) || cm_ip_header_decode(private_data, &ip);
}

static struct wrong wrong_with_req(const struct cm_req *q)
{
    if (q->transport == CM_TRANSPORT_EXTENDED && q->extended_transport != CM_EXTENDED_XRC)
        return (struct wrong){"the extended transport type", q->extended_transport};
    if (q->path_mtu < 1 || q->path_mtu > 5)
        return (struct wrong){"the path MTU", q->path_mtu};
    if (!has_ip_header(q->service_id, q->private_data))
        return (struct wrong){"an IP service ID without the IP header: version byte", q->private_data[0]};
    return (struct wrong){NULL, 0};
}

static struct wrong wrong_with_rej(const struct cm_rej *r)
{
    if (r->answers > CM_ANSWERS_OTHER)
        return (struct wrong){"the message that is rejected", r->answers};
    if (strcmp(cm_reject_reason_text(r->reason), "unknown") == 0)
        return (struct wrong){"the reason", r->reason};
    if (r->ari_len > CM_REJ_ARI_LEN)
        return (struct wrong){"the length of the additional information", r->ari_len};
    return (struct wrong){NULL, 0};
}

static struct wrong wrong_with_sidr_rep(const struct cm_sidr_rep *r)
{
    if (strcmp(cm_sidr_status_text(r->status), "unknown") == 0)
        return (struct wrong){"the status", r->status};
    if (r->info_len > CM_SIDR_REP_INFO_LEN)
        return (struct wrong){"the length of the additional information", r->info_len};
    return (struct wrong){NULL, 0};
}

static struct wrong wrong_with(const struct cm_msg *m)
{
    switch (m->attribute) {
    case CM_REQ:
        return wrong_with_req(&m->req);
    case CM_MRA:
        if (m->mra.answers > CM_ANSWERS_OTHER)
            return (struct wrong){"the message that is acknowledged", m->mra.answers};
        break;
    case CM_REJ:
        return wrong_with_rej(&m->rej);
    case CM_SIDR_REQ:
        if (!has_ip_header(m->sidr_req.service_id, m->sidr_req.private_data))
            return (struct wrong){"an IP service ID without the IP header: version byte", m->sidr_req.private_data[0]};
        break;
    case CM_SIDR_REP:
        return wrong_with_sidr_rep(&m->sidr_rep);
    case CM_APR:
        if (m->apr.info_len > CM_APR_INFO_LEN)
            return (struct wrong){"the length of the additional information", m->apr.info_len};
        break;
    }
    return (struct wrong){NULL, 0};
}

/* --- reserved bits ------------------------------------------------------------------------------------ */

/* The encoder writes 0 to reserved bits. So all bits that differ from what it makes of the decoded message are reserved. */
static void check_reserved(struct lint *l, uint32_t frame, const uint8_t *mad, const struct cm_msg *m)
{
    uint8_t plain[MAD_LEN];

    cm_msg_encode(m, plain);
    if (m->attribute == CM_REQ)
        plain[REQ_SAP_AT] |= mad[REQ_SAP_AT] & REQ_SAP_BIT;
    for (unsigned i = STATUS_AT; i < MAD_LEN; i++) {
        if (mad[i] == plain[i])
            continue;
        lint_report(l, LINT_CM_RESERVED, frame, "%s: reserved bits 0x%02x of byte %u of the MAD are set",
                    cm_attribute_name(m->attribute), mad[i] & ~plain[i], i);
        return;
    }
}

/* --- a packet ----------------------------------------------------------------------------------------- */

static void check_message(struct lint *l, uint32_t frame, const uint8_t *mad)
{
    struct mad_header h;
    struct cm_msg m;

    mad_decode(mad, &h);
    if (h.mgmt_class == MAD_CLASS_CM && cm_msg_decode(mad, &m) == CM_DECODE_OK) {
        struct wrong w = wrong_with(&m);

        if (w.what)
            lint_report(l, LINT_CM_VALUE, frame, "%s: %s is %u", cm_attribute_name(m.attribute), w.what, w.value);
        check_reserved(l, frame, mad, &m);
    } else if (h.base_version != MAD_BASE_VERSION || h.mgmt_class == MAD_CLASS_CM) {
        lint_report(l, LINT_MAD_HEADER, frame,
                    "base version %u, class 0x%02x of version %u, method 0x%02x, attribute 0x%04x", h.base_version,
                    h.mgmt_class, h.class_version, h.method, h.attribute_id);
    }
}

void lint_mad(struct lint *l, uint32_t frame, const struct pkt *p)
{
    if (!is_mad(p)) {
        lint_report(l, LINT_MAD_LENGTH, frame, "%s %s to QP 1 with %u bytes", op_service_name(p->opcode),
                    op_table[p->opcode].name, p->payload_len);
        return;
    }
    if (p->deth.qkey != MAD_QKEY)
        lint_report(l, LINT_GSI_QKEY, frame, "the Q_Key is 0x%08x", p->deth.qkey);
    check_message(l, frame, p->payload);
}

uint32_t lint_mad_keep(struct lint *l, const struct pkt *p, size_t there)
{
    struct cm_msg m;

    if (!is_mad(p) || there < MAD_LEN || cm_msg_decode(p->payload, &m) != CM_DECODE_OK)
        return 0;
    struct lint_mad *all = lint_grow(l, l->mads, l->num_mads, &l->cap_mads, sizeof(*all));
    if (!all)
        return 0;
    l->mads = all;
    memcpy(all[l->num_mads++].bytes, p->payload, MAD_LEN);
    return (uint32_t)l->num_mads;
}
