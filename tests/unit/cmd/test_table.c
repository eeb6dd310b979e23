// SPDX-License-Identifier: BSD-2-Clause
/* src/cmd: tables on the terminal, and documents as text. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/columns.h"
#include "src/cmd/inspect/table.h"

static char *text;
static size_t size;
static FILE *out;

static void start(void)
{
    cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
    out = open_memstream(&text, &size);
}

static void end(void)
{
    fclose(out);
    free(text);
}

TestSuite(table, .init = start, .fini = end);

Test(table, columns_are_aligned_and_lines_have_no_spaces_at_their_ends)
{
    struct columns c;

    columns_init(&c, " ", true);
    columns_add(&c, "name", 0, 0);
    columns_add(&c, "n", 4, COLUMNS_RIGHT);
    columns_add(&c, "last", 6, 0);
    columns_row(&c);
    columns_cell(&c, "%s", "größe");
    columns_cell(&c, "%d", 12345);
    columns_cell(&c, "x");
    columns_row(&c);
    columns_cell(&c, "a\nb");
    columns_cell(&c, "1");
    columns_print(&c, out, "> ", "<");
    columns_fini(&c);
    fflush(out);
    cr_expect_str_eq(text, "> name       n last<\n"
                           "> größe  12345 x<\n"
                           "> a\\x0ab     1<\n");
}

Test(table, a_document)
{
    static const struct table_columns columns[] = {{"qps", "qpn state"}, {NULL, NULL}};
    json_t *doc =
        json_loads("{\"version\": \"1\", \"list\": [1, 2], \"devices\": [{\"name\": \"a\", \"counters\": "
                   "{\"sent\": 12, \"zero\": 0, \"lost\": 3, \"late\": 4}, \"qps\": [{\"qpn\": 17, \"state\": "
                   "\"RTS\", \"more\": 1}, {\"qpn\": 4096, \"state\": null}]}]}",
                   0, NULL);

    cr_assert_not_null(doc);
    table_print(out, doc, columns, false);
    fflush(out);
    cr_expect_str_eq(text, "  version 1   list 1, 2\n"
                           "\n"
                           "devices\n"
                           "  name\n"
                           "  a\n"
                           "\n"
                           "devices a / counters\n"
                           "  sent                12  lost                 3\n"
                           "  late                 4\n"
                           "\n"
                           "devices a / qps\n"
                           "   qpn  state\n"
                           "    17  RTS\n"
                           "  4096  -\n");
    json_decref(doc);
}

Test(table, long_text_is_cut_between_characters)
{
    static const struct table_columns columns[] = {{NULL, NULL}};
    char value[128] = "";
    json_t *doc;

    for (unsigned i = 0; i < 40; i++)
        strcat(value, "ö");
    doc = json_pack("{s:s}", "name", value);
    table_print(out, doc, columns, false);
    fflush(out);
    cr_expect_eq(strlen(text), strlen("  name ") + 62 + 1);
    cr_expect_eq(strncmp(text + strlen("  name "), value, 62), 0);
    json_decref(doc);
}
