// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/mads.h"

#include "daemon/objects/qp/abandoned_qp.h"

/* Most MADs of one pass. The engine sends them faster than the passes bring them, unless the socket is full. */
#define MADS_PER_PASS 32u

unsigned mads_send(struct device *d)
{
    struct cm_datagram out;
    unsigned n = 0;

    if (!mad_box_pending(&d->mads))
        return 0;
    while (n < MADS_PER_PASS && mad_box_next_to_send(&d->mads, &out)) {
        struct av av = {.sgid_index = out.sgid_index, .traffic_class = out.traffic_class, .hop_limit = out.hop_limit};

        memcpy(av.dgid, out.remote_gid, sizeof(av.dgid));
        if (out.abandoned_qpn)
            abandoned_qp_stop(d, out.abandoned_qpn);
        /* A MAD that the engine does not take is lost, as in a network. Its sender repeats it. */
        engine_send_mad(d->engine, &av, out.mad);
        n++;
    }
    return n;
}

void mads_receive(struct device *d)
{
    struct gsi_mad m;

    while (engine_pop_mad(d->engine, &m)) {
        struct cm_datagram in = {
            .device = d->index,
            .sgid_index = m.av.sgid_index,
            .traffic_class = m.av.traffic_class,
            .hop_limit = m.av.hop_limit,
        };

        memcpy(in.local_gid, m.dgid, sizeof(in.local_gid));
        memcpy(in.remote_gid, m.av.dgid, sizeof(in.remote_gid));
        memcpy(in.mad, m.data, sizeof(in.mad));
        mad_box_received(&d->mads, &in);
    }
}
