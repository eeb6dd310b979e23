// SPDX-License-Identifier: BSD-2-Clause
/* Makes a capture from the input of a fuzz target, because few bytes make a valid file. */
#ifndef PUMICE_TESTS_FUZZ_FUZZ_CAPTURE_H
#define PUMICE_TESTS_FUZZ_FUZZ_CAPTURE_H

#include <string.h>

#include "pcap/frame.h"
#include "pcap/pcapng.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#define FUZZ_CAPTURE_MAX (1 << 18)

/* Every packet of the file: a byte for who sends and how it is seen, a byte for its length in words, and its bytes. Its
 * ICRC is made right, and its PSN and QP are kept small, so that packets have to do with each other. */
static inline size_t fuzz_capture_packet(uint8_t *file, size_t at, const uint8_t *data, size_t size, uint64_t now)
{
    struct frame_flow flow = {.src = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
                              .dst = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
                              .src_port = 1000,
                              .dst_port = ROCE_PORT};
    struct icrc_flow icrc_flow = {.src_port = 1000, .dst_port = ROCE_PORT};
    struct icrc_ctx ctx;
    uint8_t payload[1100], head[FRAME_HEAD_MAX];
    size_t len = (size_t)data[1] * 4 + BTH_LEN + ICRC_LEN, n = size - 2 < len ? size - 2 : len;
    struct pcapng_packet p = {.direction = data[0] >> 1 & 1 ? PCAPNG_DIR_OUT : PCAPNG_DIR_UNKNOWN,
                              .time_ns = now,
                              .head = head,
                              .data = payload,
                              .len = len};

    if (data[0] & 1) {
        flow.src[15] = 2;
        flow.dst[15] = 1;
    }
    memset(payload, 0, sizeof(payload));
    memcpy(payload, data + 2, n);
    payload[5] = payload[6] = payload[9] = payload[10] = 0;
    payload[7] &= 1;
    memcpy(icrc_flow.src, flow.src, 16);
    memcpy(icrc_flow.dst, flow.dst, 16);
    icrc_ctx_init(&ctx, &icrc_flow);
    icrc_store(payload + len - ICRC_LEN, icrc_compute(&ctx, 0, payload, len - ICRC_LEN) ^ (data[0] >> 7));
    p.head_len = frame_head(head, &flow, payload, len);
    return pcapng_packet(file + at, FUZZ_CAPTURE_MAX - at, &p);
}

/* Makes the whole file; returns its size. */
static inline size_t fuzz_capture(uint8_t file[FUZZ_CAPTURE_MAX], const uint8_t *data, size_t size)
{
    size_t at = pcapng_section(file, FUZZ_CAPTURE_MAX, NULL);

    at += pcapng_interface(file + at, FUZZ_CAPTURE_MAX - at, NULL);
    for (uint64_t now = 1; size >= 2 && at + 2048 < FUZZ_CAPTURE_MAX; now += 50000000) {
        size_t used = (size_t)data[1] * 4 + BTH_LEN + ICRC_LEN + 2;

        at += fuzz_capture_packet(file, at, data, size, now);
        used = used < size ? used : size;
        data += used;
        size -= used;
    }
    return at;
}

#endif
