// SPDX-License-Identifier: BSD-2-Clause
/* Capture: copies a device's packets into rings in shared memory, one for each client that captures (struct
 * pm_capture_page in abi_capture.h). The device's loop writes them and never waits: what has no room is counted and gone. The
 * client makes pcapng of them, and fills in what is missing there (ICRCs of packets that had none).
 *
 * While nobody captures it costs a comparison for each message sent and each packet received. */
#ifndef PUMICE_DAEMON_CAPTURE_H
#define PUMICE_DAEMON_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/device.h"
#include "daemon/session/control.h"
#include "daemon/session/segment.h"
#include "pumice/abi_capture.h"

struct capture {
    struct capture *next; /* of the device */
    struct device *device;
    struct pm_capture_req filter; /* a private copy, checked */
    struct segment segment;
    struct pm_capture_page *page; /* hostile: only tail is ever read, once for each packet */
    uint8_t *ring; /* filter.ring_bytes */
    uint64_t head; /* ours; the page has a copy, and so on */
    uint64_t packets, dropped;
};

/* Any thread: checks the request and makes a tap, which copies nothing yet; the reply gets the segment. NULL: *rp says why. */
struct capture *capture_create(struct device *d, const struct pm_capture_req *rq, struct control_reply *rp);
/* In the device's thread: from now on, and until now. */
void capture_attach(struct capture *t);
void capture_detach(struct capture *t);
/* Any thread, after capture_detach; the client's mapping stays. */
void capture_destroy(struct capture *t);

static inline bool capture_on(const struct device *d)
{
    return __builtin_expect(d->captures != NULL, 0);
}

/* What the datapath tells, each if capture_on. A batch as the engine made it, before faults and ICRCs. */
void capture_made(struct device *d, const struct tx_batch *b);
/* A message of n packets, at data one behind the other, that goes to the socket: with ICRCs and faults. */
void capture_sent(struct device *d, const struct tx_pkt *pkt, unsigned n, const uint8_t *data, bool ce);
/* A packet that stays inside of the device or (multicast) comes back to it, after faults. */
void capture_inside(struct device *d, const struct tx_pkt *pkt, const uint8_t *data, bool ce);
/* A packet of at least BTH and ICRC from the socket, right or wrong; ip_id: as its ICRC has it. */
void capture_received(struct device *d, const struct rx_meta *meta, uint16_t src_port, uint16_t ip_id,
                      const uint8_t *data, uint32_t len);

#endif
