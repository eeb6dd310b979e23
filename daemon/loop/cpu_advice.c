// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/cpu_advice.h"

#define MUCH_MORE 8 /* times as many packets */
/* Packets of a datagram, if messages come one by one: the message, and perhaps an ACK with it. */
#define FEW 2
/* Datagrams between two looks, at least, before they show anything. */
#define LEAST 8
/* Bytes of a datagram, on average, if long messages are sent. The ACKs of the peer count, too. */
#define BULK 8192
/* So many sessions for each processor crowd each other. */
#define MANY 12

bool cpu_advice_many(unsigned sessions, unsigned processors)
{
    return sessions > MANY * processors;
}

enum cpu_advice cpu_advice_look(struct cpu_advice_traffic *last, const struct cpu_advice_traffic *now,
                                unsigned sessions, unsigned processors)
{
    uint64_t inside = now->inside - last->inside, outside = now->outside - last->outside;
    uint64_t datagrams = now->datagrams - last->datagrams;
    uint64_t out = now->bytes_out - last->bytes_out, in = now->bytes_in - last->bytes_in;

    *last = *now;
    if (sessions > processors)
        return CPU_ADVICE_NONE;
    if (inside > MUCH_MORE * outside)
        return CPU_ADVICE_APART;
    if (datagrams < LEAST || outside <= MUCH_MORE * inside)
        return CPU_ADVICE_NONE;
    if (outside <= FEW * datagrams)
        return CPU_ADVICE_BESIDE;
    if (out + in < BULK * datagrams)
        return CPU_ADVICE_NONE;
    return out > MUCH_MORE * in ? CPU_ADVICE_AWAY : in > MUCH_MORE * out ? CPU_ADVICE_BESIDE_CROWDED : CPU_ADVICE_NONE;
}
