// SPDX-License-Identifier: BSD-2-Clause
/* Encodes and decodes messages by a table of their fields. One table serves both directions, so that they cannot
 * differ. For messages with many fields of odd widths that are not on the fast path (wire/cm_msg.h). */
#ifndef PUMICE_WIRE_BIT_FIELD_H
#define PUMICE_WIRE_BIT_FIELD_H

#include <stdint.h>

/* Where a field, or a part of one, is in the message and in a C structure. */
struct bit_field {
    uint16_t byte; /* of the message: where the field begins */
    uint8_t bit; /* of that byte: where the field begins; 0 is the most significant bit */
    uint16_t width; /* bits; more than 64: an array of bytes that begins and ends at whole bytes */
    uint16_t member; /* offset in the structure */
    uint16_t member_len; /* bytes: 1, 2, 4 or 8; of an array: all of it */
    uint8_t shift; /* of a part of a field: the bits of the member below it */
};

/* The fields' members in *out are 0 before. */
void bit_fields_decode(const uint8_t *data, const struct bit_field *fields, unsigned count, void *out);
/* The fields' bits in data are 0 before. Of a value that is wider than its field, the low bits are written. */
void bit_fields_encode(const void *in, const struct bit_field *fields, unsigned count, uint8_t *data);

#endif
