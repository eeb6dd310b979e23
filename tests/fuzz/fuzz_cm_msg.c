// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: MADs from the network. Encoding a decoded message gives the same bytes but for reserved bits, and
 * decoding and encoding it again changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "wire/cm_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_ip_header(const uint8_t *private_data)
{
    uint8_t again[CM_IP_HEADER_LEN];
    struct cm_ip_header h, same;

    if (!cm_ip_header_decode(private_data, &h))
        return;
    must(h.ip_version == 4 || h.ip_version == 6);
    cm_ip_header_encode(&h, again);
    must(cm_ip_header_decode(again, &same));
    must(h.source_port == same.source_port && memcmp(h.source, same.source, 16) == 0);
    must(memcmp(h.destination, same.destination, 16) == 0);
}

static void check_ranges(const struct cm_msg *m)
{
    if (m->attribute == CM_REQ) {
        must(m->req.local_qpn <= 0xffffff && m->req.starting_psn <= 0xffffff && m->req.path_mtu <= 15);
        must(m->req.primary.flow_label <= 0xfffff && m->req.ece_vendor_id <= 0xffffff);
        check_ip_header(m->req.private_data);
    } else if (m->attribute == CM_REP) {
        must(m->rep.local_qpn <= 0xffffff && m->rep.rnr_retry_count <= 7 && m->rep.ece_vendor_id <= 0xffffff);
    } else if (m->attribute == CM_SIDR_REQ) {
        check_ip_header(m->sidr_req.private_data);
    } else if (m->attribute == CM_REJ) {
        must(m->rej.ari_len <= 127 && m->rej.answers <= 3 && cm_reject_reason_text(m->rej.reason));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t mad[MAD_LEN] = {1, MAD_CLASS_CM, MAD_CLASS_CM_VERSION, MAD_METHOD_SEND};
    uint8_t once[MAD_LEN], twice[MAD_LEN];
    struct cm_msg m, again;

    if (size > MAD_LEN)
        return 0;
    memcpy(mad, data, size);
    if (cm_msg_decode(mad, &m) != CM_DECODE_OK)
        return 0;
    check_ranges(&m);
    cm_msg_encode(&m, once);
    for (unsigned i = MAD_HEADER_LEN; i < MAD_LEN; i++)
        must((once[i] & ~mad[i]) == 0); /* no bit that was not there */
    must(cm_msg_decode(once, &again) == CM_DECODE_OK);
    cm_msg_encode(&again, twice);
    must(memcmp(once, twice, MAD_LEN) == 0 && memcmp(&m, &again, sizeof(m)) == 0);
    return 0;
}
