// SPDX-License-Identifier: BSD-2-Clause
/* The messages of connection management (IBA 12.6, 12.11), with an encoder and a decoder. A message is one MAD
 * (wire/mad.h) of class MAD_CLASS_CM. All fields are in host byte order; GUIDs and service IDs are numbers. The layout
 * of each message is a table in wire/cm_msg.c.
 *
 * REQ, REP and SIDR_REP carry the vendor's options of the QPs (enhanced connection establishment, ECE): a vendor ID in
 * formerly reserved bytes of the message, and a number of the vendor's in the attribute modifier of the MAD. */
#ifndef PUMICE_WIRE_CM_MSG_H
#define PUMICE_WIRE_CM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cm_ip.h"
#include "wire/mad.h"

/* Attribute IDs of the class (IBA 16.7.3). */
enum cm_attribute {
    CM_REQ = 0x0010, /* request for communication */
    CM_MRA = 0x0011, /* message receipt acknowledgment */
    CM_REJ = 0x0012, /* reject */
    CM_REP = 0x0013, /* reply to a request for communication */
    CM_RTU = 0x0014, /* ready to use */
    CM_DREQ = 0x0015, /* request for communication release */
    CM_DREP = 0x0016, /* reply to it */
    CM_SIDR_REQ = 0x0017, /* service ID resolution */
    CM_SIDR_REP = 0x0018,
    CM_LAP = 0x0019, /* load alternate path */
    CM_APR = 0x001a, /* alternate path response */
};

/* Bytes of private data that each message carries. */
#define CM_REQ_PRIVATE_LEN 92u
#define CM_MRA_PRIVATE_LEN 222u
#define CM_REJ_PRIVATE_LEN 148u
#define CM_REJ_ARI_LEN 72u /* additional reject information */
#define CM_REP_PRIVATE_LEN 196u
#define CM_RTU_PRIVATE_LEN 224u
#define CM_DREQ_PRIVATE_LEN 220u
#define CM_DREP_PRIVATE_LEN 224u
#define CM_SIDR_REQ_PRIVATE_LEN 216u
#define CM_SIDR_REP_PRIVATE_LEN 136u
#define CM_SIDR_REP_INFO_LEN 72u
#define CM_LAP_PRIVATE_LEN 168u
#define CM_APR_PRIVATE_LEN 148u
#define CM_APR_INFO_LEN 72u
#define CM_PRIVATE_MAX 224u

/* Transport service types (IBA 12.7.15). With CM_TRANSPORT_EXTENDED, extended_transport says which: 1 is XRC (A14). */
enum cm_transport {
    CM_TRANSPORT_RC = 0,
    CM_TRANSPORT_UC = 1,
    CM_TRANSPORT_RD = 2,
    CM_TRANSPORT_EXTENDED = 3,
};
#define CM_EXTENDED_XRC 1u

/* A path of a REQ or LAP. For RoCE the LIDs are not used: they are sent as 0xffff, as Linux does it. */
struct cm_path {
    uint16_t local_lid, remote_lid;
    uint8_t local_gid[16], remote_gid[16];
    uint32_t flow_label; /* 20 bits */
    uint8_t packet_rate; /* 6 bits */
    uint8_t traffic_class, hop_limit;
    uint8_t sl; /* 4 bits */
    bool subnet_local;
    uint8_t local_ack_timeout; /* 5 bits */
};

struct cm_req {
    uint32_t local_comm_id;
    uint64_t service_id, local_ca_guid;
    uint32_t local_qkey;
    uint32_t local_qpn; /* 24 bits */
    uint32_t local_eecn, remote_eecn; /* 24 bits; RD only */
    uint8_t responder_resources, initiator_depth;
    uint8_t remote_response_timeout, local_response_timeout; /* 5 bits: 4.096 us * 2^n */
    uint8_t transport; /* enum cm_transport */
    uint8_t extended_transport; /* 3 bits */
    bool flow_control; /* end-to-end flow control */
    uint32_t starting_psn; /* 24 bits */
    uint8_t retry_count, rnr_retry_count; /* 3 bits */
    uint8_t max_cm_retries; /* 4 bits */
    uint16_t pkey;
    uint8_t path_mtu; /* 4 bits: enum ibv_mtu */
    bool rdc_exists, srq;
    struct cm_path primary, alternate; /* alternate: all zeros if there is none */
    uint32_t ece_vendor_id; /* 24 bits */
    uint32_t ece_attr_mod;
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
};

/* The message that an MRA or REJ answers (IBA 12.6.6, 12.6.7). */
enum cm_answered {
    CM_ANSWERS_REQ = 0,
    CM_ANSWERS_REP = 1,
    CM_ANSWERS_OTHER = 2, /* REJ: no message; MRA: a LAP */
};

struct cm_mra {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t answers; /* enum cm_answered */
    uint8_t service_timeout; /* 5 bits */
    uint8_t private_data[CM_MRA_PRIVATE_LEN];
};

/* Reasons of a REJ (IBA 12.6.7.2). */
enum cm_reject_reason {
    CM_REJ_NO_QP = 1,
    CM_REJ_NO_EEC = 2,
    CM_REJ_NO_RESOURCES = 3,
    CM_REJ_TIMEOUT = 4,
    CM_REJ_UNSUPPORTED = 5,
    CM_REJ_INVALID_COMM_ID = 6,
    CM_REJ_INVALID_COMM_INSTANCE = 7,
    CM_REJ_INVALID_SERVICE_ID = 8,
    CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    CM_REJ_STALE_CONN = 10,
    CM_REJ_RDC_NOT_EXIST = 11,
    CM_REJ_INVALID_GID = 12,
    CM_REJ_INVALID_LID = 13,
    CM_REJ_INVALID_SL = 14,
    CM_REJ_INVALID_TRAFFIC_CLASS = 15,
    CM_REJ_INVALID_HOP_LIMIT = 16,
    CM_REJ_INVALID_PACKET_RATE = 17,
    CM_REJ_INVALID_ALT_GID = 18,
    CM_REJ_INVALID_ALT_LID = 19,
    CM_REJ_INVALID_ALT_SL = 20,
    CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
    CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
    CM_REJ_INVALID_ALT_PACKET_RATE = 23,
    CM_REJ_PORT_CM_REDIRECT = 24,
    CM_REJ_PORT_REDIRECT = 25,
    CM_REJ_INVALID_MTU = 26,
    CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
    CM_REJ_CONSUMER_DEFINED = 28,
    CM_REJ_INVALID_RNR_RETRY = 29,
    CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
    CM_REJ_INVALID_CLASS_VERSION = 31,
    CM_REJ_INVALID_FLOW_LABEL = 32,
    CM_REJ_INVALID_ALT_FLOW_LABEL = 33,
    CM_REJ_VENDOR_OPTION_NOT_SUPPORTED = 35,
};
/* A few words for people, for example "invalid service ID". "unknown" for other numbers. */
const char *cm_reject_reason_text(uint16_t reason);

struct cm_rej {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t answers; /* enum cm_answered */
    uint16_t reason; /* enum cm_reject_reason */
    uint8_t ari_len; /* 7 bits */
    uint8_t ari[CM_REJ_ARI_LEN];
    uint8_t private_data[CM_REJ_PRIVATE_LEN];
};

struct cm_rep {
    uint32_t local_comm_id, remote_comm_id;
    uint32_t local_qkey;
    uint32_t local_qpn, local_eecn, starting_psn; /* 24 bits */
    uint8_t responder_resources, initiator_depth;
    uint8_t target_ack_delay; /* 5 bits */
    uint8_t failover_accepted; /* 2 bits */
    bool flow_control;
    uint8_t rnr_retry_count; /* 3 bits */
    bool srq;
    uint64_t local_ca_guid;
    uint32_t ece_vendor_id; /* 24 bits */
    uint32_t ece_attr_mod;
    uint8_t private_data[CM_REP_PRIVATE_LEN];
};

/* Also the form of DREP. */
struct cm_rtu {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t private_data[CM_RTU_PRIVATE_LEN];
};

struct cm_dreq {
    uint32_t local_comm_id, remote_comm_id;
    uint32_t remote_qpn; /* 24 bits */
    uint8_t private_data[CM_DREQ_PRIVATE_LEN];
};

struct cm_sidr_req {
    uint32_t request_id;
    uint16_t pkey;
    uint64_t service_id;
    uint8_t private_data[CM_SIDR_REQ_PRIVATE_LEN];
};

enum cm_sidr_status { /* IBA 12.11.2 */
                      CM_SIDR_SUCCESS = 0,
                      CM_SIDR_UNSUPPORTED = 1, /* service ID not supported */
                      CM_SIDR_REJECT = 2, /* by the service provider */
                      CM_SIDR_NO_QP = 3,
                      CM_SIDR_REDIRECT = 4,
                      CM_SIDR_UNSUPPORTED_VERSION = 5,
};
/* A few words for people, for example "service ID not supported". "unknown" for other numbers. */
const char *cm_sidr_status_text(uint8_t status);

struct cm_sidr_rep {
    uint32_t request_id;
    uint8_t status; /* enum cm_sidr_status */
    uint8_t info_len;
    uint32_t qpn; /* 24 bits */
    uint64_t service_id;
    uint32_t qkey;
    uint32_t ece_vendor_id; /* 24 bits */
    uint32_t ece_attr_mod;
    uint8_t info[CM_SIDR_REP_INFO_LEN];
    uint8_t private_data[CM_SIDR_REP_PRIVATE_LEN];
};

struct cm_lap {
    uint32_t local_comm_id, remote_comm_id;
    uint32_t remote_qpn; /* 24 bits */
    uint8_t remote_response_timeout; /* 5 bits */
    struct cm_path alternate;
    uint8_t private_data[CM_LAP_PRIVATE_LEN];
};

#define CM_APR_UNSUPPORTED 3u /* ap_status: "requester does not support…" values are those of IBA 12.8.3 */
struct cm_apr {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t info_len, ap_status;
    uint8_t info[CM_APR_INFO_LEN];
    uint8_t private_data[CM_APR_PRIVATE_LEN];
};

/* One message of any kind. */
struct cm_msg {
    uint64_t transaction_id;
    uint16_t attribute; /* enum cm_attribute: which member of the union is valid */
    union {
        struct cm_req req;
        struct cm_mra mra;
        struct cm_rej rej;
        struct cm_rep rep;
        struct cm_rtu rtu; /* CM_RTU and CM_DREP */
        struct cm_dreq dreq;
        struct cm_sidr_req sidr_req;
        struct cm_sidr_rep sidr_rep;
        struct cm_lap lap;
        struct cm_apr apr;
    };
};

/* Why a MAD is no message for us. */
enum cm_decode_result {
    CM_DECODE_OK,
    CM_DECODE_OTHER_CLASS, /* not a MAD of connection management, or not a Send */
    CM_DECODE_VERSION, /* base or class version; out->attribute and transaction_id are valid, and the communication IDs of a REQ */
    CM_DECODE_ATTRIBUTE, /* unknown attribute */
};
/* Sets the whole of *out. Values are those of the message, also where they mean nothing: the caller checks them. */
enum cm_decode_result cm_msg_decode(const uint8_t mad[MAD_LEN], struct cm_msg *out);
/* Writes all MAD_LEN bytes. Reserved bits are 0. Of a value that is wider than its field, the low bits are written. */
void cm_msg_encode(const struct cm_msg *m, uint8_t mad[MAD_LEN]);

/* "REQ", "SIDR_REP", …; "unknown" for other numbers. */
const char *cm_attribute_name(uint16_t attribute);
/* The attribute of the message in the packet pkt[0 … len), which begins with the BTH. 0: the packet carries no message of
 * connection management. */
uint16_t cm_attribute_of_packet(const uint8_t *pkt, size_t len);

#endif
