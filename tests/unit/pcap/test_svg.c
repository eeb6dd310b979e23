// SPDX-License-Identifier: BSD-2-Clause
/* Texts of pictures: whatever a capture holds, the output is valid XML and valid UTF-8. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/picture/svg.h"

#define BAD "\xef\xbf\xbd"

static void escaped(const char *text, const char *wanted)
{
    char *got = NULL;
    size_t len;
    FILE *f = open_memstream(&got, &len);

    svg_text(f, text);
    fclose(f);
    cr_assert_str_eq(got, wanted);
    free(got);
}

Test(svg, markup_is_escaped)
{
    escaped("<b>&\"x\"</b>", "&lt;b&gt;&amp;&quot;x&quot;&lt;/b&gt;");
    escaped("plain \xc2\xb7 \xe2\x86\x92 \xf0\x9f\x98\x80", "plain \xc2\xb7 \xe2\x86\x92 \xf0\x9f\x98\x80");
}

Test(svg, bytes_that_xml_does_not_allow_are_replaced)
{
    escaped("a\x01z\x1b\x7f", "a" BAD "z" BAD BAD);
    escaped("\xff\xfe", BAD BAD);
    escaped("\xc3", BAD); /* ends within a character */
    escaped("\xc0\xaf", BAD BAD); /* longer than need be */
    escaped("\xed\xa0\x80", BAD BAD BAD); /* a surrogate */
    escaped("\xef\xbf\xbf", BAD BAD BAD); /* U+FFFF */
    escaped("\xf8\x88\x80\x80\x80", BAD BAD BAD BAD BAD);
}

Test(svg, numbers_and_durations)
{
    char text[SVG_NUMBER_MAX];

    cr_assert_str_eq(svg_number(text, 0), "0");
    cr_assert_str_eq(svg_number(text, 999), "999");
    cr_assert_str_eq(svg_number(text, 1000), "1,000");
    cr_assert_str_eq(svg_number(text, UINT64_MAX), "18,446,744,073,709,551,615");
    cr_assert_str_eq(svg_duration(text, 731), "731 ns");
    cr_assert_str_eq(svg_duration(text, 12345), "12.3 \xc2\xb5s");
    cr_assert_str_eq(svg_duration(text, 1250000), "1.250 ms");
    cr_assert_str_eq(svg_duration(text, 2500000000u), "2.500 s");
}
