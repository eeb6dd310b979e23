// SPDX-License-Identifier: BSD-2-Clause
/* Names that programs choose. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/base/printable.h"

Test(printable, control_characters_and_wrong_bytes_are_replaced)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"ib_write_bw", "ib_write_bw"},
        {"a\nb", "a?b"},
        {"\033[2Jx", "?[2Jx"},
        {"\x7f\x01\x1f", "???"},
        {"na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x9f", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x9f"},
        {"cut\xe2\x82", "cut??"},
        {"\xc2\x9b"
         "31m",
         "??31m"},
        {"\xe2\x80\xae"
         "txt",
         "???txt"},
        {"\xff\xfe", "??"},
        {"\xc0\xaf \xe0\x80\xaf", "?? ???"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\"quote\\", "\"quote\\"},
    };
    char text[64];

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), "%s", cases[i][0]);
        make_printable(text);
        cr_expect_str_eq(text, cases[i][1], "case %u: %s", i, text);
    }
}
