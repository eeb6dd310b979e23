// SPDX-License-Identifier: BSD-2-Clause
/* libpcap must read the packets that were written. A small independent parser checks blocks and options. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcap/capfile.h"

static const uint8_t v4_src[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1};
static const uint8_t v4_dst[16] = {[10] = 0xff, [11] = 0xff, [12] = 198, 51, 100, 2};
static const uint8_t v6_src[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
static const uint8_t v6_dst[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

static struct frame_flow flow_of(bool is_v6)
{
    struct frame_flow f = {.src_port = 50000, .dst_port = 4791, .ip_id = 0xabcd, .tos = 0x2e};

    memcpy(f.src, is_v6 ? v6_src : v4_src, 16);
    memcpy(f.dst, is_v6 ? v6_dst : v4_dst, 16);
    return f;
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned be16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* --- blocks ------------------------------------------------------------------------------------ */

/* Searches the options from p to the end of its block. Returns the length of option `code`, or -1, and its value. */
static int option(const uint8_t *p, const uint8_t *end, unsigned code, const uint8_t **value)
{
    while (p + 4 <= end) {
        unsigned c = p[0] | p[1] << 8, n = p[2] | p[3] << 8;

        p += 4;
        if (c == 0)
            return -1;
        if (c == code) {
            *value = p;
            return (int)n;
        }
        p += (n + 3) & ~3u;
    }
    cr_assert_fail("options without end");
    return -1;
}

static void check_block(const uint8_t *b, size_t size, uint32_t type)
{
    cr_expect_eq(size % 4, 0);
    cr_expect_eq(le32(b), type);
    cr_expect_eq(le32(b + 4), size);
    cr_expect_eq(le32(b + size - 4), size);
}

Test(pcapng, section_and_interface)
{
    static const char *const names[] = {NULL, "", "a", "ab", "abc", "abcd", "abcde"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint8_t b[256];
        const uint8_t *value;
        size_t n = names[i] ? strlen(names[i]) : 0;
        size_t size = pcapng_section(b, sizeof(b), names[i]);

        check_block(b, size, 0x0a0d0d0a);
        cr_expect_eq(le32(b + 8), 0x1a2b3c4d);
        cr_expect_eq(option(b + 24, b + size - 4, 4, &value), n ? (int)n : -1);
        if (n)
            cr_expect_arr_eq(value, names[i], n);

        size = pcapng_interface(b, sizeof(b), names[i]);
        check_block(b, size, 1);
        cr_expect_eq(option(b + 16, b + size - 4, 2, &value), n ? (int)n : -1);
        if (n)
            cr_expect_arr_eq(value, names[i], n);
        cr_assert_eq(option(b + 16, b + size - 4, 9, &value), 1);
        cr_expect_eq(value[0], 9, "nanoseconds");
    }
}

Test(pcapng, blocks_that_do_not_fit_are_not_written)
{
    uint8_t data[33] = {0};
    struct pcapng_packet p = {.data = data, .len = sizeof(data), .comment = "why", .direction = PCAPNG_DIR_IN};
    size_t section = pcapng_section(NULL, 0, "app"), interface = pcapng_interface(NULL, 0, "lo"),
           packet = pcapng_packet(NULL, 0, &p);

    for (size_t cap = 0; cap <= packet; cap++) {
        uint8_t *b = malloc(cap ? cap : 1);

        memset(b, 0x77, cap);
        cr_expect_eq(pcapng_section(b, cap, "app"), section);
        cr_expect_eq(cap > 0 && b[0] != 0x77, cap >= section);
        memset(b, 0x77, cap);
        cr_expect_eq(pcapng_interface(b, cap, "lo"), interface);
        cr_expect_eq(cap > 0 && b[0] != 0x77, cap >= interface);
        memset(b, 0x77, cap);
        cr_expect_eq(pcapng_packet(b, cap, &p), packet);
        cr_expect_eq(cap > 0 && b[0] != 0x77, cap >= packet);
        free(b);
    }
}

Test(pcapng, packet_options)
{
    for (size_t len = 0; len < 9; len++) {
        for (size_t comment_len = 0; comment_len < 9; comment_len++) {
            static const uint8_t bytes[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
            char comment[9] = "";
            uint8_t b[128];
            const uint8_t *value, *options;
            struct pcapng_packet p = {.head = bytes,
                                      .head_len = len / 2,
                                      .data = bytes + len / 2,
                                      .len = len - len / 2,
                                      .comment = comment,
                                      .direction = len % 3,
                                      .interface = 5,
                                      .time_ns = 0x123456789abcdef0};
            size_t size;

            memset(comment, 'c', comment_len);
            size = pcapng_packet(b, sizeof(b), &p);
            check_block(b, size, 6);
            cr_expect_eq(le32(b + 8), 5);
            cr_expect_eq(le32(b + 12), 0x12345678);
            cr_expect_eq(le32(b + 16), 0x9abcdef0);
            cr_expect_eq(le32(b + 20), len);
            cr_expect_eq(le32(b + 24), len);
            cr_expect_arr_eq(b + 28, bytes, len);
            options = b + 28 + ((len + 3) & ~3u);
            cr_expect_eq(option(options, b + size - 4, 1, &value), comment_len ? (int)comment_len : -1);
            if (comment_len)
                cr_expect_arr_eq(value, comment, comment_len);
            cr_expect_eq(option(options, b + size - 4, 2, &value), len % 3 ? 4 : -1);
            if (len % 3)
                cr_expect_eq(le32(value), len % 3);
        }
    }
}

Test(pcapng, a_comment_is_cut)
{
    char *comment = calloc(1, 70001);
    uint8_t *b = malloc(80000);
    struct pcapng_packet p = {.comment = comment};
    const uint8_t *value;
    size_t size;

    memset(comment, 'x', 70000);
    size = pcapng_packet(b, 80000, &p);
    check_block(b, size, 6);
    cr_expect_eq(option(b + 28, b + size - 4, 1, &value), 65535);
    free(comment);
    free(b);
}

/* --- frames ------------------------------------------------------------------------------------ */

/* True if the sum of all words, including the checksum, is that of a right checksum. */
static bool sums_up(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

Test(frame, headers_and_checksums)
{
    for (size_t len = 0; len < 300; len++) {
        for (int is_v6 = 0; is_v6 < 2; is_v6++) {
            struct frame_flow f = flow_of(is_v6);
            uint8_t *b = malloc(FRAME_HEAD_MAX + len), *payload = malloc(len + 1);
            size_t head, ip_len = is_v6 ? 40 : 20, addr_len = is_v6 ? 16 : 4;
            uint8_t *ip, *udp;
            uint32_t pseudo = 17 + 8 + (uint32_t)len;

            for (size_t i = 0; i < len; i++)
                payload[i] = (uint8_t)(i * 37 + len);
            head = frame_head(b, &f, payload, len);
            memcpy(b + head, payload, len);
            ip = b + 14;
            udp = ip + ip_len;
            cr_assert_eq(head, 14 + ip_len + 8);
            cr_expect_eq(be16(b + 12), is_v6 ? 0x86dd : 0x0800);
            cr_expect_eq(b[0], 2, "locally administered, unicast");
            cr_expect_eq(b[6], 2);
            cr_expect_eq(be16(udp), 50000);
            cr_expect_eq(be16(udp + 2), 4791);
            cr_expect_eq(be16(udp + 4), 8 + len);
            cr_expect_neq(be16(udp + 6), 0);
            if (is_v6) {
                cr_expect_eq(be16(ip), 0x62e0, "version, traffic class");
                cr_expect_eq(be16(ip + 4), 8 + len);
                cr_expect_eq(ip[6], 17);
                cr_expect_arr_eq(ip + 8, v6_src, 16);
                cr_expect_arr_eq(ip + 24, v6_dst, 16);
            } else {
                cr_expect_eq(be16(ip), 0x452e);
                cr_expect_eq(be16(ip + 2), 28 + len);
                cr_expect_eq(be16(ip + 4), 0xabcd);
                cr_expect_eq(be16(ip + 6), 0x4000);
                cr_expect_eq(ip[9], 17);
                cr_expect(sums_up(ip, 20, 0));
                cr_expect_arr_eq(ip + 12, v4_src + 12, 4);
                cr_expect_arr_eq(ip + 16, v4_dst + 12, 4);
            }
            for (size_t i = 0; i < 2 * addr_len; i += 2)
                pseudo += be16(udp - 2 * addr_len + i);
            cr_expect(sums_up(udp, 8 + len, pseudo), "v6 %d length %zu", is_v6, len);
            free(b);
            free(payload);
        }
    }
}

Test(frame, a_checksum_of_zero_is_sent_as_ones)
{
    struct frame_flow f = flow_of(false);
    unsigned ones = 0;

    for (unsigned word = 0; word < 65536; word++) {
        uint8_t b[FRAME_HEAD_MAX], payload[2] = {(uint8_t)(word >> 8), (uint8_t)word};
        size_t head = frame_head(b, &f, payload, 2);

        cr_assert_neq(be16(b + head - 2), 0);
        ones += be16(b + head - 2) == 0xffff;
    }
    cr_expect_geq(ones, 1);
}

Test(frame, limits)
{
    static uint8_t payload[FRAME_PAYLOAD_MAX + 1];
    struct frame_flow f = flow_of(false);
    uint8_t b[FRAME_HEAD_MAX];

    cr_expect_eq(frame_head(b, &f, payload, FRAME_PAYLOAD_MAX), 42);
    cr_expect_eq(be16(b + 16), 65535);
    cr_expect_eq(frame_head(b, &f, payload, FRAME_PAYLOAD_MAX + 1), 0);
    memcpy(f.dst, v6_dst, 16);
    cr_expect_eq(frame_head(b, &f, payload, 0), 62, "IPv4 only if both are");
}

/* --- files ------------------------------------------------------------------------------------- */

Test(capfile, libpcap_reads_what_was_written)
{
    char path[] = "/tmp/pumice-test-XXXXXX", error[PCAP_ERRBUF_SIZE];
    const uint64_t start = 1700000000999999990u;
    static uint8_t payload[FRAME_PAYLOAD_MAX];
    struct capfile c;
    struct pcap_pkthdr *header;
    const u_char *data;
    pcap_t *pcap;
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 31 >> 3);
    cr_assert_eq(capfile_open(&c, path, "test"), 0);
    cr_assert_eq(capfile_add_interface(&c, "one"), 0);
    for (size_t len = 0; len < 100; len++) {
        struct frame_flow f = flow_of(len % 2);
        char comment[32];

        if (len == 50)
            cr_assert_eq(capfile_add_interface(&c, "two"), 1);
        snprintf(comment, sizeof(comment), "number %zu", len);
        cr_assert_eq(capfile_add_udp(&c, len >= 50, start + len, &f, payload, len == 99 ? sizeof(payload) : len,
                                     PCAPNG_DIR_OUT, len % 3 ? comment : NULL),
                     0);
    }
    {
        struct frame_flow f = flow_of(false);

        cr_expect_eq(capfile_add_udp(&c, 2, 0, &f, payload, 1, PCAPNG_DIR_IN, NULL), -EINVAL);
        cr_expect_eq(capfile_add_udp(&c, 0, 0, &f, payload, FRAME_PAYLOAD_MAX + 1, PCAPNG_DIR_IN, NULL), -EMSGSIZE);
    }
    cr_assert_eq(capfile_close(&c), 0);

    pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
    cr_assert_not_null(pcap, "%s", error);
    cr_expect_eq(pcap_datalink(pcap), DLT_EN10MB);
    for (size_t i = 0; i < 100; i++) {
        size_t head = i % 2 ? 62 : 42, len = i == 99 ? sizeof(payload) : i;

        cr_assert_eq(pcap_next_ex(pcap, &header, &data), 1, "packet %zu: %s", i, pcap_geterr(pcap));
        cr_expect_eq((uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec, start + i);
        cr_expect_eq(header->len, head + len);
        cr_assert_eq(header->caplen, head + len);
        cr_expect_eq(memcmp(data + head, payload, len), 0);
        cr_expect_eq(be16(data + head - 4), 8 + len);
    }
    cr_expect_eq(pcap_next_ex(pcap, &header, &data), -2, "the end");
    pcap_close(pcap);
    unlink(path);
}

Test(capfile, errors)
{
    struct capfile c;
    struct frame_flow f = flow_of(false);
    static uint8_t payload[60000];
    int err = 0;

    cr_expect_eq(capfile_open(&c, "/nonexistent/x.pcapng", NULL), -ENOENT);
    if (access("/dev/full", W_OK) != 0)
        return;
    cr_assert_eq(capfile_open(&c, "/dev/full", NULL), 0, "buffered");
    err = capfile_add_interface(&c, "x");
    if (err >= 0)
        err = capfile_add_udp(&c, 0, 0, &f, payload, sizeof(payload), PCAPNG_DIR_IN, NULL);
    cr_expect_lt(capfile_close(&c), 0);
    cr_expect(err == 0 || err == -ENOSPC);
}
