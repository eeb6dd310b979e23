// SPDX-License-Identifier: BSD-2-Clause
/* Which queue pair is connected to which, for all devices of the daemon.
 *
 * QPs of several users share the address of a device, and RC, UC and XRC packets do not name the QP that sent them. So
 * a device that receives a packet through its socket can't tell whether its peer sent it. But the daemon can tell before
 * it sends: a device that is about to send a packet to an address of this daemon looks here, and refuses the packet if
 * the destination is connected to another QP. (The destination then compares the address of the sender itself.) Packets
 * within one device need none of this, see rx_meta.src_qpn.
 *
 * The thread of each device writes its own part, and the threads of all devices read all parts. */
#ifndef PUMICE_DAEMON_DEVICE_CONNECTIONS_H
#define PUMICE_DAEMON_DEVICE_CONNECTIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/types.h"
#include "pumice/abi.h"

/* Slots for the QPs of one device: as many as the engine has, which gives each QP number a slot of its own. */
#define CONNECTION_SLOTS 131072u

struct connections {
    unsigned devices;
    /* [CONNECTION_SLOTS] of each device, by the lower bits of a QP number: the number << 32 | that of its peer. 0: no
     * such QP is connected. A slot is one word, so readers never see half of a change. */
    _Atomic uint64_t *slot[PM_DEVICES_MAX];
    pthread_mutex_t lock; /* protects the addresses */
    _Atomic uint32_t changes; /* of the addresses; begins at 1 */
    struct {
        unsigned n;
        uint8_t gid[ENGINE_MAX_GIDS][16];
    } address[PM_DEVICES_MAX];
};

/* A thread's own copy of the addresses, so that it takes no lock for a packet. Begins zeroed. */
struct connections_view {
    uint32_t changes; /* state of the addresses that the rest is about */
    unsigned n;
    struct {
        uint8_t gid[16];
        unsigned device; /* that has it */
    } address[PM_DEVICES_MAX * ENGINE_MAX_GIDS];
    uint8_t last[16]; /* the address that was looked up last */
    int last_device; /* -1: none of this daemon */
};

/* 0, or -ENOMEM. Before the threads of the devices run. */
int connections_init(struct connections *c, unsigned devices);
void connections_fini(struct connections *c); /* c may be zeroed */

/* The device has these addresses from now on. n: at most ENGINE_MAX_GIDS. */
void connections_set_addresses(struct connections *c, unsigned device, const uint8_t (*gid)[16], unsigned n);
/* The device's QP takes packets of this peer only. peer 0: it is not connected, or gone. */
void connections_set_peer(struct connections *c, unsigned device, uint32_t qpn, uint32_t peer);

/* Must a packet from QP src_qpn to QP dest_qpn at dgid not leave, because that QP is one of this daemon and connected to
 * another QP? Not for datagrams (UD). */
bool connections_refuse(struct connections *c, struct connections_view *v, const uint8_t dgid[16], uint32_t dest_qpn,
                        uint32_t src_qpn);

#endif
