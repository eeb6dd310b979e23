// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/capread.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/note.h"

#define MAGIC_PCAPNG 0x0a0d0d0au
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define BLOCK_MAX (CAPREAD_FRAME_MAX + 65536 * 4)
#define INTERFACES_MAX 4096

enum {
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET_OLD = 2,
    BLOCK_SIMPLE = 3,
    BLOCK_STATISTICS = 5,
    BLOCK_PACKET = 6,
};
enum {
    OPT_COMMENT = 1,
    OPT_EPB_FLAGS = 2,
    OPT_IF_TSRESOL = 9,
    OPT_IF_TSOFFSET = 14,
    OPT_ISB_IFDROP = 5,
    OPT_ISB_OSDROP = 7,
};

struct interface {
    int linktype;
    uint32_t snaplen;
    uint64_t per_second; /* units of its timestamps */
    uint64_t offset; /* seconds to add to its timestamps */
    uint64_t lost; /* packets that the capture lost at it, from its newest statistics */
    uint64_t faults; /* packets that faults lost, from the comment of the newest statistics */
};

struct capread {
    FILE *f;
    pcap_t *pcap; /* NULL: pcapng */
    bool swapped; /* the current section does not have this machine's byte order */
    uint8_t *block; /* body of the current block */
    size_t cap; /* size of block, bytes */
    struct interface *interfaces; /* of all sections */
    uint32_t first; /* index of the current section's first interface */
    uint32_t n; /* interfaces of all sections */
    uint32_t frames; /* read so far */
    uint64_t lost; /* packets that the capture lost, from the statistics of earlier sections */
};

/* --- numbers in the byte order of the section --------------------------------------------------------------------- */

static uint16_t u16(const struct capread *c, const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return c->swapped ? __builtin_bswap16(v) : v;
}

static uint32_t u32(const struct capread *c, const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return c->swapped ? __builtin_bswap32(v) : v;
}

static uint64_t u64(const struct capread *c, const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return c->swapped ? __builtin_bswap64(v) : v;
}

static int fail(char error[CAPREAD_ERROR], const char *text)
{
    snprintf(error, CAPREAD_ERROR, "%s", text);
    return -1;
}

/* Finds the option with this code in p[0 ... n). Returns its value and sets *len, or returns NULL. */
static const uint8_t *option(const struct capread *c, const uint8_t *p, size_t n, unsigned code, size_t *len)
{
    while (n >= 4) {
        unsigned this = u16(c, p);
        size_t size = u16(c, p + 2), padded = (size + 3) & ~(size_t)3;

        if (this == 0 || padded > n - 4)
            return NULL;
        if (this == code) {
            *len = size;
            return p + 4;
        }
        p += 4 + padded;
        n -= 4 + padded;
    }
    return NULL;
}

/* --- blocks of pcapng --------------------------------------------------------------------------------------------- */

/* Reads the rest of a section header. The caller has read its type and length. The header shows the byte order of the
 * section. */
static int section(struct capread *c, const uint8_t raw_len[4], char error[CAPREAD_ERROR])
{
    uint8_t fixed[16];
    uint32_t magic;

    if (fread(fixed, 1, sizeof(fixed), c->f) != sizeof(fixed))
        return fail(error, "ends within a section header");
    memcpy(&magic, fixed, sizeof(magic));
    if (magic != BYTE_ORDER_MAGIC && __builtin_bswap32(magic) != BYTE_ORDER_MAGIC)
        return fail(error, "a section header without byte order");
    c->swapped = magic != BYTE_ORDER_MAGIC;
    if (u16(c, fixed + 4) != 1)
        return fail(error, "a version of pcapng that is not known");
    uint32_t len = u32(c, raw_len);
    if (len < 28 || len % 4 || len > BLOCK_MAX)
        return fail(error, "a section header of impossible length");
    for (uint32_t rest = len - 24; rest; rest--)
        if (fgetc(c->f) == EOF)
            return fail(error, "ends within a section header");
    c->lost = capread_lost(c);
    c->first = c->n;
    return 0;
}

/* Reads the next block: its type, and its body without the trailing length into c->block. Returns 1, 0 at the end of
 * the file, or -1. */
static int next_block(struct capread *c, uint32_t *type, size_t *len, char error[CAPREAD_ERROR])
{
    uint8_t head[8];
    size_t got = fread(head, 1, sizeof(head), c->f);

    if (got == 0)
        return 0;
    if (got < sizeof(head))
        return fail(error, "ends within a block");
    *type = u32(c, head);
    *len = 0;
    if (*type == MAGIC_PCAPNG) /* the number is the same in both byte orders */
        return section(c, head + 4, error) ? -1 : 1;
    uint32_t total = u32(c, head + 4);
    if (total < 12 || total % 4 || total > BLOCK_MAX)
        return fail(error, "a block of impossible length");
    size_t body = total - sizeof(head);
    if (body > c->cap) {
        uint8_t *more = realloc(c->block, body);

        if (!more)
            return fail(error, "out of memory");
        c->block = more;
        c->cap = body;
    }
    if (fread(c->block, 1, body, c->f) != body)
        return fail(error, "ends within a block");
    if (u32(c, c->block + body - 4) != total)
        return fail(error, "a block with two lengths");
    *len = body - 4;
    return 1;
}

static uint64_t resolution(const uint8_t *value, size_t len)
{
    unsigned e = len >= 1 ? value[0] & 0x7fu : 6;
    uint64_t n = 1;

    if (len >= 1 && value[0] & 0x80)
        return e < 63 ? (uint64_t)1 << e : 1;
    for (; e && n <= UINT64_MAX / 10; e--)
        n *= 10;
    return n;
}

static int add_interface(struct capread *c, size_t len, char error[CAPREAD_ERROR])
{
    struct interface *i;
    size_t n = 0;

    if (len < 8)
        return fail(error, "an interface block that is too short");
    if (c->n - c->first >= INTERFACES_MAX || c->n >= 16 * INTERFACES_MAX)
        return fail(error, "too many interfaces");
    i = realloc(c->interfaces, (c->n + 1) * sizeof(*i));
    if (!i)
        return fail(error, "out of memory");
    c->interfaces = i;
    i += c->n++;
    *i = (struct interface){.linktype = u16(c, c->block), .snaplen = u32(c, c->block + 4), .per_second = 1000000};
    const uint8_t *value = option(c, c->block + 8, len - 8, OPT_IF_TSRESOL, &n);
    if (value)
        i->per_second = resolution(value, n);
    value = option(c, c->block + 8, len - 8, OPT_IF_TSOFFSET, &n);
    if (value && n == 8)
        i->offset = u64(c, value);
    return 1;
}

static void statistics(struct capread *c, size_t len)
{
    uint64_t lost = 0;
    size_t n = 0;

    if (len < 12)
        return;
    uint32_t number = u32(c, c->block);
    if (number >= c->n - c->first)
        return;
    const uint8_t *value = option(c, c->block + 12, len - 12, OPT_ISB_IFDROP, &n);
    if (value && n == 8)
        lost += u64(c, value);
    value = option(c, c->block + 12, len - 12, OPT_ISB_OSDROP, &n);
    if (value && n == 8)
        lost += u64(c, value);
    c->interfaces[c->first + number].lost = lost;
    value = option(c, c->block + 12, len - 12, OPT_COMMENT, &n);
    c->interfaces[c->first + number].faults = value ? note_lost((const char *)value, n) : 0;
}

static uint64_t to_ns(const struct interface *i, uint64_t t)
{
    uint64_t seconds = t / i->per_second, rest = t % i->per_second;

    /* rest is below per_second. Where the product would overflow, the precision of double is enough. */
    rest = i->per_second <= UINT64_MAX / 1000000000u ? rest * 1000000000u / i->per_second
                                                     : (uint64_t)((double)rest / (double)i->per_second * 1e9);
    return (seconds + i->offset) * 1000000000u + rest;
}

/* Reads an enhanced packet block or an obsolete packet block. The obsolete one has the interface and a drop count in
 * one word. */
static int packet(struct capread *c, uint32_t type, size_t len, struct capread_frame *out, char error[CAPREAD_ERROR])
{
    const uint8_t *b = c->block;
    size_t n = 0;

    if (len < 20)
        return fail(error, "a packet block that is too short");
    uint32_t number = type == BLOCK_PACKET ? u32(c, b) : u16(c, b);
    if (number >= c->n - c->first)
        return fail(error, "a packet of an interface that isn't there");
    out->caplen = u32(c, b + 12);
    out->len = u32(c, b + 16);
    size_t padded = ((size_t)out->caplen + 3) & ~(size_t)3;
    if (padded > len - 20 || out->caplen > CAPREAD_FRAME_MAX)
        return fail(error, "a packet longer than its block");
    out->interface = c->first + number;
    out->linktype = c->interfaces[out->interface].linktype;
    out->time_ns = to_ns(&c->interfaces[out->interface], (uint64_t)u32(c, b + 4) << 32 | u32(c, b + 8));
    out->data = b + 20;
    out->direction = PCAPNG_DIR_UNKNOWN;
    const uint8_t *flags = option(c, b + 20 + padded, len - 20 - padded, OPT_EPB_FLAGS, &n);
    if (flags && n == 4 && (u32(c, flags) & 3) != 3)
        out->direction = u32(c, flags) & 3;
    out->comment = (const char *)option(c, b + 20 + padded, len - 20 - padded, OPT_COMMENT, &out->comment_len);
    return 1;
}

static int simple_packet(struct capread *c, size_t len, struct capread_frame *out, char error[CAPREAD_ERROR])
{
    if (len < 4 || c->n == c->first)
        return fail(error, "a packet of an interface that isn't there");
    const struct interface *i = &c->interfaces[c->first];
    out->len = u32(c, c->block);
    out->caplen = out->len < len - 4 ? out->len : (uint32_t)(len - 4);
    if (i->snaplen && out->caplen > i->snaplen)
        out->caplen = i->snaplen;
    out->interface = c->first;
    out->linktype = i->linktype;
    out->time_ns = 0;
    out->direction = PCAPNG_DIR_UNKNOWN;
    out->data = c->block + 4;
    return 1;
}

static int next_pcapng(struct capread *c, struct capread_frame *out, char error[CAPREAD_ERROR])
{
    uint32_t type;
    size_t len;
    int got;

    while ((got = next_block(c, &type, &len, error)) == 1) {
        if (type == BLOCK_INTERFACE && add_interface(c, len, error) < 0)
            return -1;
        if (type == BLOCK_STATISTICS)
            statistics(c, len);
        if (type == BLOCK_PACKET || type == BLOCK_PACKET_OLD)
            got = packet(c, type, len, out, error);
        else if (type == BLOCK_SIMPLE)
            got = simple_packet(c, len, out, error);
        else
            continue;
        break;
    }
    if (got == 1)
        out->number = ++c->frames;
    return got;
}

/* --- classic pcap ------------------------------------------------------------------------------------------------- */

static int next_pcap(struct capread *c, struct capread_frame *out, char error[CAPREAD_ERROR])
{
    struct pcap_pkthdr *h;
    const u_char *data;
    int got = pcap_next_ex(c->pcap, &h, &data);

    if (got == PCAP_ERROR_BREAK)
        return 0;
    if (got != 1)
        return fail(error, pcap_geterr(c->pcap));
    if (h->caplen > CAPREAD_FRAME_MAX)
        return fail(error, "a frame of impossible length");
    *out = (struct capread_frame){
        .time_ns = (uint64_t)h->ts.tv_sec * 1000000000u + (uint64_t)h->ts.tv_usec,
        .number = ++c->frames,
        .len = h->len,
        .caplen = h->caplen,
        .linktype = pcap_datalink(c->pcap),
        .data = data,
    };
    return 1;
}

static pcap_t *open_pcap(FILE *f, char error[CAPREAD_ERROR])
{
    char text[PCAP_ERRBUF_SIZE] = "";
    pcap_t *p = pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, text);

    if (!p)
        fail(error, text);
    return p;
}

struct capread *capread_open(FILE *f, char error[CAPREAD_ERROR])
{
    struct capread *c = calloc(1, sizeof(*c));
    int first = fgetc(f);

    if (!c || first == EOF || ungetc(first, f) == EOF) {
        fail(error, !c ? "out of memory" : "the file is empty");
        free(c);
        return NULL;
    }
    c->f = f;
    if (first == (MAGIC_PCAPNG & 0xff)) /* no magic number of classic pcap begins with this byte */
        return c;
    c->pcap = open_pcap(f, error);
    if (!c->pcap) {
        free(c);
        return NULL;
    }
    return c;
}

int capread_next(struct capread *c, struct capread_frame *out, char error[CAPREAD_ERROR])
{
    out->comment = NULL;
    out->comment_len = 0;
    return c->pcap ? next_pcap(c, out, error) : next_pcapng(c, out, error);
}

uint64_t capread_lost(const struct capread *c)
{
    uint64_t lost = c->lost;

    for (uint32_t i = c->first; i < c->n; i++)
        lost += c->interfaces[i].lost;
    return lost;
}

uint64_t capread_faults(const struct capread *c)
{
    uint64_t faults = 0;

    for (uint32_t i = 0; i < c->n; i++)
        faults += c->interfaces[i].faults;
    return faults;
}

void capread_close(struct capread *c)
{
    if (c->pcap)
        pcap_close(c->pcap);
    else
        fclose(c->f);
    free(c->block);
    free(c->interfaces);
    free(c);
}
