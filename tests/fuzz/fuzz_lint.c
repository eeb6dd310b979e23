// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: captures. The input is the bytes of a file, or the UDP payloads of a file that is built here,
 * because few bytes make a valid file. The sanitizers detect reads out of bounds. The target checks that findings are
 * in order and counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/frame.h"
#include "pcap/lint/lint.h"
#include "pcap/pcapng.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_MAX (1 << 18)

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void lint(const uint8_t *data, size_t size, const struct lint_options *options)
{
    struct lint_result r;
    size_t errors = 0;
    FILE *f;
    int err;

    if (size == 0)
        return;
    f = fmemopen((void *)data, size, "rb");
    must(f != NULL);
    err = lint_run(&r, f, options);
    must(err == 0 || err == -EINVAL);
    must((err == 0) == (r.error[0] == 0));
    for (size_t i = 0; i < r.n; i++) {
        must(r.findings[i].rule < LINT_RULES && r.findings[i].frame >= 1 && r.findings[i].frame <= r.frames);
        must(i == 0 || r.findings[i - 1].frame <= r.findings[i].frame);
        errors += r.findings[i].severity == LINT_ERROR;
    }
    must(errors == r.errors && r.errors + r.notes == r.n);
    lint_free(&r);
}

/* Every packet of the file: a byte for who sends and how it is seen, a byte for its length in words, and its bytes. Its
 * ICRC is made right, and its PSN and QP are kept small, so that packets have to do with each other. */
static size_t packet(uint8_t *file, size_t at, const uint8_t *data, size_t size, uint64_t now)
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
    return pcapng_packet(file + at, FILE_MAX - at, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[FILE_MAX];
    struct lint_options options = {.tm = LINT_TM_AUTO};
    size_t at;

    lint(data, size, &options);
    at = pcapng_section(file, sizeof(file), NULL);
    at += pcapng_interface(file + at, sizeof(file) - at, NULL);
    for (uint64_t now = 1; size >= 2 && at + 2048 < sizeof(file); now += 50000000) {
        size_t used = (size_t)data[1] * 4 + BTH_LEN + ICRC_LEN + 2;

        at += packet(file, at, data, size, now);
        used = used < size ? used : size;
        data += used;
        size -= used;
    }
    options.tm = size % 2 ? LINT_TM_LISTED : LINT_TM_AUTO;
    options.num_tm_qps = 2;
    options.tm_qps[1] = 1;
    lint(file, at, &options);
    return 0;
}
