// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/ladder_svg.h"

#include "pcap/picture/ladder_draw.h"
#include "pcap/picture/svg.h"

#define TITLE 46 /* height of the title */
#define MARGIN 16

void ladder_svg(FILE *f, const struct ladder *l)
{
    int width = ladder_width(l), rows = ladder_rows_height(l, l->packets, l->num_packets);
    int top = TITLE + LADDER_LEGEND + LADDER_HEAD, height = top + rows + MARGIN;
    char summary[LADDER_SUMMARY_MAX];

    ladder_summary(summary, l);
    fprintf(
        f,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
        "height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>%s</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        width, height, width, height, ladder_style, width, height);
    fputs("<text class=\"title\" x=\"20\" y=\"26\">", f);
    svg_text(f, l->name);
    fputs("</text><text class=\"sub\" x=\"20\" y=\"44\">", f);
    svg_text(f, summary);
    fputs("</text>\n", f);
    ladder_draw_legend(f, l, TITLE);
    ladder_draw_lines(f, l, top - 10, rows + 10);
    ladder_draw_heads(f, l, TITLE + LADDER_LEGEND);
    ladder_draw_rows(f, l, l->packets, l->num_packets, top);
    fputs("</svg>\n", f);
}
