// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/capture/capture_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/opname.h"
#include "wire/gid.h"

#define RING_DEFAULT (16u << 20)

enum key {
    KEY_QP = 256,
    KEY_PEER,
    KEY_OPCODE,
    KEY_BEFORE,
    KEY_LOST,
    KEY_DIRECTION,
};

static const struct argp_option options[] = {
    {"qp", KEY_QP, "N", 0, "Only packets from or to this queue pair number", 1},
    {"peer", KEY_PEER, "ADDRESS", 0, "Only packets from or to this address", 1},
    {"opcode", KEY_OPCODE, "NAME", 0,
     "Only packets whose opcode name contains NAME, such as send, ack, 'read response' or 'XRC SEND Only', or one of "
     "several such names, separated by commas; the option may be repeated",
     1},
    {"direction", KEY_DIRECTION, "in|out|both", 0,
     "Packets that devices receive, send, or both; default: both, but out for several hosts of a lab", 1},
    {"before-faults", KEY_BEFORE, NULL, 0, "Capture sent packets before injected faults change them; default: after",
     1},
    {"lost", KEY_LOST, NULL, 0, "Capture the packets that injected faults lose, too, at interfaces of their own", 1},
    {"snaplen", 's', "N", 0, "Keep only N bytes of each packet, from the transport header on; default: all", 2},
    {"buffer", 'B', "MIB", 0, "Buffer of each device in MiB, a power of two; default: 16", 2},
    {0},
};

void capture_filter_init(struct pm_capture_req *rq)
{
    memset(rq, 0, sizeof(*rq));
    rq->ring_bytes = RING_DEFAULT;
}

long capture_filter_number(struct argp_state *state, const char *option, const char *text, long least, long most)
{
    char *end;

    errno = 0;
    long n = strtol(text, &end, 0);
    if (errno || *end || end == text || n < least || n > most)
        argp_error(state, "--%s: invalid value \"%s\": expected a number from %ld to %ld", option, text, least, most);
    return n;
}

static void set_peer(struct argp_state *state, struct pm_capture_req *rq, const char *text)
{
    struct in_addr v4;

    rq->has_peer = 1;
    if (inet_pton(AF_INET6, text, rq->peer) == 1)
        return;
    if (inet_pton(AF_INET, text, &v4) != 1)
        argp_error(state, "--peer: invalid value \"%s\": expected an IPv4 or IPv6 address", text);
    gid_from_v4(rq->peer, &v4);
}

static void set_direction(struct argp_state *state, struct pm_capture_req *rq, const char *text)
{
    rq->flags &= ~(uint32_t)(PM_CAPTURE_IN | PM_CAPTURE_OUT);
    if (strcmp(text, "in") == 0 || strcmp(text, "both") == 0)
        rq->flags |= PM_CAPTURE_IN;
    if (strcmp(text, "out") == 0 || strcmp(text, "both") == 0)
        rq->flags |= PM_CAPTURE_OUT;
    if (!(rq->flags & (PM_CAPTURE_IN | PM_CAPTURE_OUT)))
        argp_error(state, "--direction: invalid value \"%s\": expected in, out or both", text);
}

static void add_opcodes(struct argp_state *state, struct pm_capture_req *rq, const char *text)
{
    char *names = strdup(text), *rest = names, *name;

    while ((name = strsep(&rest, ",")) != NULL)
        if (!*name || opname_match(name, rq->opcodes) == 0)
            argp_error(state, "--opcode=%s: no opcode name contains '%s' (try send, write, read, atomic, ack, cnp ...)",
                       text, name);
    free(names);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct pm_capture_req *rq = state->input;

    switch (key) {
    case KEY_QP:
        rq->qpn = (uint32_t)capture_filter_number(state, "qp", arg, 1, 0xffffff);
        break;
    case KEY_PEER:
        set_peer(state, rq, arg);
        break;
    case KEY_OPCODE:
        add_opcodes(state, rq, arg);
        break;
    case KEY_DIRECTION:
        set_direction(state, rq, arg);
        break;
    case KEY_BEFORE:
        rq->flags |= PM_CAPTURE_BEFORE;
        break;
    case KEY_LOST:
        rq->flags |= PM_CAPTURE_LOST;
        break;
    case 's':
        rq->snaplen = (uint32_t)capture_filter_number(state, "snaplen", arg, 16, 65535);
        break;
    case 'B':
        rq->ring_bytes = (uint32_t)capture_filter_number(state, "buffer", arg, 1, PM_CAPTURE_RING_MAX >> 20) << 20;
        if (rq->ring_bytes & (rq->ring_bytes - 1))
            argp_error(state, "--buffer: invalid value \"%s\": expected a power of two (MiB)", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp capture_filter_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};
