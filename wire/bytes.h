// SPDX-License-Identifier: BSD-2-Clause
/* Reads and writes integers in byte buffers. Each function handles a field of the width (bits) in its name, and returns
 * the pointer to the next byte. Functions with "be" use network byte order (most significant byte first), functions
 * with "le" little-endian order. They do not check bounds: a codec checks once, at its start, that all its bytes are
 * there. The functions use shifts, so they work with any alignment and on hosts of any byte order. Compilers turn the
 * shifts into one load and one byte swap. */
#ifndef PUMICE_WIRE_BYTES_H
#define PUMICE_WIRE_BYTES_H

#include <stdint.h>

static inline const uint8_t *get_u8(const uint8_t *p, uint8_t *v)
{
    *v = p[0];
    return p + 1;
}

static inline const uint8_t *get_be16(const uint8_t *p, uint16_t *v)
{
    *v = (uint16_t)(p[0] << 8 | p[1]);
    return p + 2;
}

static inline const uint8_t *get_be24(const uint8_t *p, uint32_t *v)
{
    *v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
    return p + 3;
}

static inline const uint8_t *get_be32(const uint8_t *p, uint32_t *v)
{
    *v = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    return p + 4;
}

static inline const uint8_t *get_be64(const uint8_t *p, uint64_t *v)
{
    uint32_t hi, lo;

    p = get_be32(p, &hi);
    p = get_be32(p, &lo);
    *v = (uint64_t)hi << 32 | lo;
    return p;
}

static inline const uint8_t *get_le32(const uint8_t *p, uint32_t *v)
{
    *v = (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
    return p + 4;
}

static inline uint8_t *put_u8(uint8_t *p, uint8_t v)
{
    p[0] = v;
    return p + 1;
}

static inline uint8_t *put_be16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

/* Writes the low 24 bits of v. */
static inline uint8_t *put_be24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
    return p + 3;
}

static inline uint8_t *put_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
    return p + 4;
}

static inline uint8_t *put_be64(uint8_t *p, uint64_t v)
{
    p = put_be32(p, (uint32_t)(v >> 32));
    return put_be32(p, (uint32_t)v);
}

static inline uint8_t *put_le16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    return p + 2;
}

static inline uint8_t *put_le32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
    return p + 4;
}

#endif
