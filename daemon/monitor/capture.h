// SPDX-License-Identifier: BSD-2-Clause
/* Capture: copies a device's packets into rings in shared memory, one ring for each capturing client (struct
 * pm_capture_page in abi_capture.h). The device's loop writes the rings and never waits. A packet without room is
 * counted and dropped. The client converts the records to pcapng. It also computes the ICRC of packets that have none.
 *
 * While no client captures, the cost is one comparison for each message sent and each packet received. */
#ifndef PUMICE_DAEMON_MONITOR_CAPTURE_H
#define PUMICE_DAEMON_MONITOR_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/segment.h"
#include "pumice/abi_capture.h"

struct capture {
    struct mailbox_call begin, end; /* calls of the device's thread, of capture_begin and capture_end */
    struct capture *next; /* the next capture of the device */
    struct device *device;
    struct pm_capture_req filter; /* a private, checked copy */
    struct segment segment;
    atomic_bool lost; /* pages of the segment could not be had: the client gets no more packets */
    /* Hostile: the client can write it. The daemon reads only tail, once for each packet. */
    struct pm_capture_page *page;
    uint8_t *ring; /* filter.ring_bytes long */
    /* The daemon's own values. The page has copies of all four. */
    uint64_t head;
    uint64_t packets, dropped;
    uint64_t lost_by_faults;
};

/* Any thread. Checks the request and makes a capture that does not copy anything yet. The reply gets the segment.
 * NULL: *rp holds the error. */
struct capture *capture_create(struct device *d, const struct pm_capture_req *rq, struct control_reply *rp);
/* In the device's thread: start and stop copying. */
void capture_attach(struct capture *c);
void capture_detach(struct capture *c);
/* Any thread, after capture_detach. The client's mapping stays valid. */
void capture_destroy(struct capture *c);

/* In the main thread: lets the device's thread start copying. False: that thread does not answer, and the capture is
 * destroyed. */
bool capture_begin(struct capture *c);
/* In the main thread: lets the device's thread stop copying, and destroys the capture. If that thread does not answer,
 * this happens when it does. */
void capture_end(struct capture *c);

static inline bool capture_on(const struct device *d)
{
    return __builtin_expect(d->captures != NULL, 0);
}

/* The data path calls the following functions only if capture_on. capture_made records the packets of a batch from `from`
 * on as the engine made them, before faults and ICRCs. faults: PM_RECORD_LOST and others of enum pm_record_flags. */
void capture_made(struct device *d, const struct tx_batch *b, unsigned from);
/* Records a message of n packets that goes to the socket, with ICRCs and faults. The packets are adjacent, the first at
 * `data`. */
void capture_sent(struct device *d, const struct tx_pkt *pkt, unsigned n, const uint8_t *data, bool ce,
                  uint32_t faults);
/* Records a packet after faults. The packet stays inside the device, or is a multicast packet that also goes to members
 * on this device. */
void capture_inside(struct device *d, const struct tx_pkt *pkt, const uint8_t *data, bool ce, uint32_t faults);
/* Counts a packet that a fault lost, and records it if the client asked for that. */
void capture_lost(struct device *d, const struct tx_pkt *pkt, const uint8_t *data, uint32_t faults);
/* Records a packet from the socket that has at least a BTH and an ICRC, valid or not. ip_id: the value with which its
 * ICRC is right. */
void capture_received(struct device *d, const struct rx_meta *meta, uint16_t src_port, uint16_t ip_id,
                      const uint8_t *data, uint32_t len);

#endif
