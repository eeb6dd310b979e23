// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/svg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define TEXT_MAX 1024

/* The number of bytes of the UTF-8 character at p; 0: it is none, or XML does not allow it. */
static unsigned character(const unsigned char *p)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 && p[0] < 0xf8 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

    if (!n || p[0] >= 0xf8)
        return 0;
    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < 0x20 ? c != '\t' && c != '\n' : c == 0x7f || c > 0x10ffff || c == 0xfffe || c == 0xffff)
        return 0;
    if ((c >= 0xd800 && c < 0xe000) || (c >= 0x80 && c < 0xa0))
        return 0;
    return c < least[n] ? 0 : n;
}

void svg_text(FILE *f, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        unsigned n = character(p);

        if (n == 0)
            fputs("\xef\xbf\xbd", f);
        else if (*p == '<')
            fputs("&lt;", f);
        else if (*p == '>')
            fputs("&gt;", f);
        else if (*p == '&')
            fputs("&amp;", f);
        else if (*p == '"')
            fputs("&quot;", f);
        else
            fwrite(p, 1, n, f);
        p += n ? n : 1;
    }
}

void svg_printf(FILE *f, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    svg_text(f, text);
}

const char *svg_number(char text[SVG_NUMBER_MAX], uint64_t value)
{
    char digits[24];
    size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value), at = 0;

    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

const char *svg_duration(char text[SVG_NUMBER_MAX], uint64_t ns)
{
    if (ns < 1000)
        snprintf(text, SVG_NUMBER_MAX, "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(text, SVG_NUMBER_MAX, "%" PRIu64 ".%" PRIu64 " \xc2\xb5s", ns / 1000, ns / 100 % 10);
    else if (ns < 1000000000)
        snprintf(text, SVG_NUMBER_MAX, "%" PRIu64 ".%03" PRIu64 " ms", ns / 1000000, ns / 1000 % 1000);
    else
        snprintf(text, SVG_NUMBER_MAX, "%" PRIu64 ".%03" PRIu64 " s", ns / 1000000000, ns / 1000000 % 1000);
    return text;
}
