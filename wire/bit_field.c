// SPDX-License-Identifier: BSD-2-Clause
#include "wire/bit_field.h"

#include <string.h>

#define BYTES_ABOVE 64u /* a field that is wider is an array of bytes */

static uint64_t mask_of(unsigned width)
{
    return width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX;
}

/* The bytes that a field touches, and the bits of the last one behind it. */
static unsigned bytes_of(const struct bit_field *f)
{
    return (f->bit + f->width + 7u) / 8;
}
static unsigned bits_behind(const struct bit_field *f)
{
    return 8 * bytes_of(f) - f->bit - f->width;
}

static uint64_t get_bits(const uint8_t *data, const struct bit_field *f)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes_of(f); i++)
        v = v << 8 | data[f->byte + i];
    return v >> bits_behind(f) & mask_of(f->width);
}

/* Sets the bits of a field, which are 0 before. */
static void put_bits(uint8_t *data, const struct bit_field *f, uint64_t v)
{
    v = (v & mask_of(f->width)) << bits_behind(f);
    for (unsigned i = bytes_of(f); i-- > 0; v >>= 8)
        data[f->byte + i] = (uint8_t)(data[f->byte + i] | (v & 0xff));
}

static uint64_t load_member(const uint8_t *p, unsigned len)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;

    switch (len) {
    case 1:
        memcpy(&v8, p, sizeof(v8));
        return v8;
    case 2:
        memcpy(&v16, p, sizeof(v16));
        return v16;
    case 4:
        memcpy(&v32, p, sizeof(v32));
        return v32;
    default:
        memcpy(&v64, p, sizeof(v64));
        return v64;
    }
}

static void store_member(uint8_t *p, unsigned len, uint64_t v)
{
    uint8_t v8 = (uint8_t)v;
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;

    switch (len) {
    case 1:
        memcpy(p, &v8, sizeof(v8));
        break;
    case 2:
        memcpy(p, &v16, sizeof(v16));
        break;
    case 4:
        memcpy(p, &v32, sizeof(v32));
        break;
    default:
        memcpy(p, &v, sizeof(v));
    }
}

static void decode_field(const uint8_t *data, const struct bit_field *f, uint8_t *member)
{
    if (f->width > BYTES_ABOVE)
        memcpy(member, data + f->byte, f->width / 8u);
    else
        store_member(member, f->member_len, load_member(member, f->member_len) | get_bits(data, f) << f->shift);
}

static void encode_field(const uint8_t *member, const struct bit_field *f, uint8_t *data)
{
    if (f->width > BYTES_ABOVE)
        memcpy(data + f->byte, member, f->width / 8u);
    else
        put_bits(data, f, load_member(member, f->member_len) >> f->shift);
}

void bit_fields_decode(const uint8_t *data, const struct bit_field *fields, unsigned count, void *out)
{
    for (unsigned i = 0; i < count; i++)
        decode_field(data, &fields[i], (uint8_t *)out + fields[i].member);
}

void bit_fields_encode(const void *in, const struct bit_field *fields, unsigned count, uint8_t *data)
{
    for (unsigned i = 0; i < count; i++)
        encode_field((const uint8_t *)in + fields[i].member, &fields[i], data);
}
