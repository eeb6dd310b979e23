// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/capfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_INITIAL 8192

static int reserve(struct capfile *c, size_t size)
{
    if (size <= c->cap)
        return 0;
    uint8_t *block = realloc(c->block, size);
    if (!block)
        return -ENOMEM;
    c->block = block;
    c->cap = size;
    return 0;
}

static int flush_block(struct capfile *c, size_t size)
{
    errno = EIO; /* in case stdio does not set it */
    return fwrite(c->block, 1, size, c->stream) == size ? 0 : -errno;
}

int capfile_start(struct capfile *c, FILE *stream, const char *application)
{
    size_t size = pcapng_section(NULL, 0, application);

    memset(c, 0, sizeof(*c));
    c->stream = stream;
    int err = reserve(c, size > BLOCK_INITIAL ? size : BLOCK_INITIAL);
    if (!err)
        err = flush_block(c, pcapng_section(c->block, c->cap, application));
    if (err)
        capfile_close(c);
    return err;
}

int capfile_open(struct capfile *c, const char *path, const char *application)
{
    FILE *stream = fopen(path, "wbe");

    return stream ? capfile_start(c, stream, application) : -errno;
}

int capfile_add_interface(struct capfile *c, const char *name)
{
    int err = reserve(c, pcapng_interface(NULL, 0, name));

    if (!err)
        err = flush_block(c, pcapng_interface(c->block, c->cap, name));
    return err ? err : (int)c->interfaces++;
}

int capfile_add_udp(struct capfile *c, uint32_t interface, uint64_t time_ns, const struct frame_flow *flow,
                    const uint8_t *payload, size_t len, enum pcapng_direction direction, const char *comment)
{
    uint8_t head[FRAME_HEAD_MAX];
    struct pcapng_packet p = {
        .interface = interface,
        .direction = direction,
        .time_ns = time_ns,
        .head = head,
        .data = payload,
        .len = len,
        .cut = flow->cut,
        .comment = comment,
    };

    if (interface >= c->interfaces)
        return -EINVAL;
    p.head_len = frame_head(head, flow, payload, len);
    if (!p.head_len)
        return -EMSGSIZE;
    int err = reserve(c, pcapng_packet(NULL, 0, &p));
    return err ? err : flush_block(c, pcapng_packet(c->block, c->cap, &p));
}

int capfile_add_statistics(struct capfile *c, uint32_t interface, uint64_t time_ns, uint64_t packets, uint64_t dropped,
                           const char *comment)
{
    int err = interface < c->interfaces
                  ? reserve(c, pcapng_statistics(NULL, 0, interface, time_ns, packets, dropped, comment))
                  : -EINVAL;

    return err ? err
               : flush_block(c, pcapng_statistics(c->block, c->cap, interface, time_ns, packets, dropped, comment));
}

int capfile_close(struct capfile *c)
{
    int err = ferror(c->stream) ? -EIO : 0;

    if (fclose(c->stream) != 0 && !err)
        err = -errno;
    free(c->block);
    memset(c, 0, sizeof(*c));
    return err;
}
