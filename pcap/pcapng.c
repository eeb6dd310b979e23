// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/pcapng.h"

#include <string.h>

#include "wire/bytes.h"

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET 6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1
#define BLOCK_OVERHEAD 12 /* the type, and the length at both ends */
#define PACKET_FIXED 20 /* interface, timestamp, both lengths */

#define OPT_END 0
#define OPT_COMMENT 1
#define OPT_SHB_USERAPPL 4
#define OPT_IF_NAME 2
#define OPT_IF_TSRESOL 9
#define OPT_EPB_FLAGS 2
#define OPT_ISB_IFRECV 4
#define OPT_ISB_IFDROP 5
#define TSRESOL_NS 9 /* units of 10^-9 s */
#define OPT_MAX 65535

static size_t pad4(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

static size_t text_len(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    return n < OPT_MAX ? n : OPT_MAX;
}

/* The size of an option with n bytes of value. Empty options are not written. */
static size_t opt_size(size_t n)
{
    return n ? 4 + pad4(n) : 0;
}

static uint8_t *put_bytes(uint8_t *d, const void *src, size_t n)
{
    if (n)
        memcpy(d, src, n);
    return d + n;
}

static uint8_t *put_zeros(uint8_t *d, size_t n)
{
    memset(d, 0, n);
    return d + n;
}

static uint8_t *put_opt(uint8_t *d, uint16_t code, const void *value, size_t n)
{
    if (!n)
        return d;
    d = put_le16(d, code);
    d = put_le16(d, (uint16_t)n);
    d = put_bytes(d, value, n);
    return put_zeros(d, pad4(n) - n);
}

static uint8_t *put_opt_end(uint8_t *d)
{
    d = put_le16(d, OPT_END);
    return put_le16(d, 0);
}

static uint8_t *put_block_head(uint8_t *d, uint32_t type, size_t size)
{
    d = put_le32(d, type);
    return put_le32(d, (uint32_t)size);
}

size_t pcapng_section(uint8_t *dst, size_t cap, const char *application)
{
    size_t app = text_len(application);
    size_t size = BLOCK_OVERHEAD + 16 + opt_size(app) + 4;

    if (size > cap)
        return size;
    dst = put_block_head(dst, BLOCK_SECTION, size);
    dst = put_le32(dst, BYTE_ORDER_MAGIC);
    dst = put_le16(dst, 1); /* version 1.0 */
    dst = put_le16(dst, 0);
    dst = put_le32(dst, UINT32_MAX); /* section length: unspecified */
    dst = put_le32(dst, UINT32_MAX);
    dst = put_opt(dst, OPT_SHB_USERAPPL, application, app);
    dst = put_opt_end(dst);
    put_le32(dst, (uint32_t)size);
    return size;
}

size_t pcapng_interface(uint8_t *dst, size_t cap, const char *name)
{
    static const uint8_t tsresol = TSRESOL_NS;
    size_t name_len = text_len(name);
    size_t size = BLOCK_OVERHEAD + 8 + opt_size(name_len) + opt_size(sizeof(tsresol)) + 4;

    if (size > cap)
        return size;
    dst = put_block_head(dst, BLOCK_INTERFACE, size);
    dst = put_le16(dst, LINKTYPE_ETHERNET);
    dst = put_le16(dst, 0);
    dst = put_le32(dst, 0); /* no snapshot length */
    dst = put_opt(dst, OPT_IF_NAME, name, name_len);
    dst = put_opt(dst, OPT_IF_TSRESOL, &tsresol, sizeof(tsresol));
    dst = put_opt_end(dst);
    put_le32(dst, (uint32_t)size);
    return size;
}

size_t pcapng_packet(uint8_t *dst, size_t cap, const struct pcapng_packet *p)
{
    size_t frame = p->head_len + p->len;
    size_t comment = text_len(p->comment);
    uint8_t flags[4];
    size_t flags_len = p->direction == PCAPNG_DIR_UNKNOWN ? 0 : sizeof(flags);
    size_t size = BLOCK_OVERHEAD + PACKET_FIXED + pad4(frame) + opt_size(comment) + opt_size(flags_len) + 4;

    if (size > cap)
        return size;
    put_le32(flags, p->direction);
    dst = put_block_head(dst, BLOCK_PACKET, size);
    dst = put_le32(dst, p->interface);
    dst = put_le32(dst, (uint32_t)(p->time_ns >> 32));
    dst = put_le32(dst, (uint32_t)p->time_ns);
    dst = put_le32(dst, (uint32_t)frame); /* captured and original length */
    dst = put_le32(dst, (uint32_t)(frame + p->cut));
    dst = put_bytes(dst, p->head, p->head_len);
    dst = put_bytes(dst, p->data, p->len);
    dst = put_zeros(dst, pad4(frame) - frame);
    dst = put_opt(dst, OPT_COMMENT, p->comment, comment);
    dst = put_opt(dst, OPT_EPB_FLAGS, flags, flags_len);
    dst = put_opt_end(dst);
    put_le32(dst, (uint32_t)size);
    return size;
}

size_t pcapng_statistics(uint8_t *dst, size_t cap, uint32_t interface, uint64_t time_ns, uint64_t packets,
                         uint64_t dropped, const char *comment)
{
    size_t comment_len = text_len(comment);
    size_t size = BLOCK_OVERHEAD + 12 + opt_size(comment_len) + 2 * opt_size(8) + 4;
    uint8_t recv[8], drop[8];

    if (size > cap)
        return size;
    put_le32(put_le32(recv, (uint32_t)packets), (uint32_t)(packets >> 32));
    put_le32(put_le32(drop, (uint32_t)dropped), (uint32_t)(dropped >> 32));
    dst = put_block_head(dst, BLOCK_STATISTICS, size);
    dst = put_le32(dst, interface);
    dst = put_le32(dst, (uint32_t)(time_ns >> 32));
    dst = put_le32(dst, (uint32_t)time_ns);
    dst = put_opt(dst, OPT_COMMENT, comment, comment_len);
    dst = put_opt(dst, OPT_ISB_IFRECV, recv, sizeof(recv));
    dst = put_opt(dst, OPT_ISB_IFDROP, drop, sizeof(drop));
    dst = put_opt_end(dst);
    put_le32(dst, (uint32_t)size);
    return size;
}
