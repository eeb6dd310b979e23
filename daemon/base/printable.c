// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/printable.h"

#include <stdint.h>

/* Length of the printable character at p: 1 to 4 bytes. 0: there is none. The final 0 is no continuation byte, so the
 * function reads nothing after it. */
static unsigned printable_length(const unsigned char *p)
{
    /* The least code point of a sequence of so many bytes. */
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned len = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);

    for (unsigned i = 1; i < len; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (len == 0 || code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    /* C0, DEL and C1; and the marks that turn the direction of the text around them. */
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
        (code >= 0x2066 && code <= 0x2069))
        return 0;
    return len;
}

void make_printable(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p;) {
        unsigned len = printable_length(p);

        if (len == 0)
            *p = '?';
        p += len ? len : 1;
    }
}
