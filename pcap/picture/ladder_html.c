// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/ladder_html.h"

#include <errno.h>
#include <stdlib.h>

#include "pcap/picture/ladder_draw.h"
#include "pcap/picture/svg.h"

#define FOLD_MIN 4 /* packets of an exchange that is folded, whatever it is */

static const char page_style[] =
    "body{margin:0;background:#fff;color:#24292f;font:14px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    "header{padding:16px 20px 6px}h1{font-size:18px;margin:0 0 4px}p{margin:0 0 6px;color:#57606a}"
    "svg{display:block}details,summary{display:block;margin:0;padding:0}summary{list-style:none;cursor:pointer}"
    "summary::-webkit-details-marker{display:none}summary:focus-visible{outline:2px solid #0969da;outline-offset:-2px}"
    "summary:hover .band{fill-opacity:.25}.closed,.open{fill:#57606a}"
    "details:not([open]) .open,details[open] .closed{display:none}"
    ".heads{position:sticky;top:0;background:#fff;z-index:1;box-shadow:0 1px 0 #d0d7de}"
    "input{margin:0 6px 0 20px}label{margin-right:4px}#all{margin-left:16px}"
    ".time-order{display:none}#all:checked~.by-exchange{display:none}#all:checked~.time-order{display:block}"
    "@media print{.heads{position:static}}";

/* True if the exchange is folded to a band. */
static bool is_folded(const struct exchange *x)
{
    switch (x->kind) {
    case EXCHANGE_READ:
    case EXCHANGE_RENDEZVOUS:
    case EXCHANGE_CONNECT:
    case EXCHANGE_DISCONNECT:
    case EXCHANGE_LOOKUP:
        return x->num_packets > 1;
    default:
        return x->num_packets >= FOLD_MIN;
    }
}

static void open_svg(FILE *f, const struct ladder *l, int height)
{
    fprintf(f, "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", ladder_width(l), height, ladder_width(l),
            height);
}

static void band(FILE *f, const struct ladder *l, const struct exchange *x)
{
    int height = ladder_rows_height(l, x->packets, x->num_packets);

    fputs("<details><summary>\n", f);
    open_svg(f, l, LADDER_BAND);
    ladder_draw_lines(f, l, 0, LADDER_BAND);
    ladder_draw_band(f, l, x, 0);
    fputs("</svg></summary>\n", f);
    open_svg(f, l, height);
    ladder_draw_area(f, l, x, 0, height);
    ladder_draw_lines(f, l, 0, height);
    ladder_draw_rows(f, l, x->packets, x->num_packets, 0);
    fputs("</svg></details>\n", f);
}

static void rows(FILE *f, const struct ladder *l, const uint32_t *packets, uint32_t n)
{
    int height = ladder_rows_height(l, packets, n);

    open_svg(f, l, height);
    ladder_draw_lines(f, l, 0, height);
    ladder_draw_rows(f, l, packets, n, 0);
    fputs("</svg>\n", f);
}

static int by_index(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* All exchanges, in the order of their first packets. Small ones between two bands share their rows. */
static int exchanges(FILE *f, const struct ladder *l)
{
    uint32_t *loose = calloc(l->num_packets + 1u, sizeof(*loose)), n = 0;

    if (!loose)
        return -ENOMEM;
    for (size_t i = 0; i <= l->exchanges.n; i++) {
        const struct exchange *x = i < l->exchanges.n ? &l->exchanges.list[i] : NULL;
        bool folded = x && is_folded(x);

        if (x && !folded) {
            for (uint32_t k = 0; k < x->num_packets; k++)
                loose[n++] = x->packets[k];
            continue;
        }
        if (n) {
            qsort(loose, n, sizeof(*loose), by_index);
            rows(f, l, loose, n);
            n = 0;
        }
        if (folded)
            band(f, l, x);
    }
    free(loose);
    return 0;
}

int ladder_html(FILE *f, const struct ladder *l)
{
    char summary[LADDER_SUMMARY_MAX];
    int err;

    ladder_summary(summary, l);
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
          "<title>",
          f);
    svg_text(f, l->name);
    fprintf(f, "</title>\n<style>%s%s</style></head>\n<body><header><h1>", page_style, ladder_style);
    svg_text(f, l->name);
    fputs("</h1><p>", f);
    svg_text(f, summary);
    fputs(" A click opens a band; the pointer over a row shows its details.</p></header>\n", f);
    fputs(
        "<input type=\"radio\" name=\"view\" id=\"bands\" checked=\"checked\"/><label for=\"bands\">exchanges</label>"
        "<input type=\"radio\" name=\"view\" id=\"all\"/><label for=\"all\">all packets in the order of time</label>\n",
        f);
    open_svg(f, l, LADDER_LEGEND);
    ladder_draw_legend(f, l, 0);
    fputs("</svg>\n<div class=\"heads\">", f);
    open_svg(f, l, LADDER_HEAD);
    ladder_draw_lines(f, l, LADDER_HEAD - 12, 12);
    ladder_draw_heads(f, l, 0);
    fputs("</svg></div>\n<div class=\"by-exchange\">\n", f);
    err = exchanges(f, l);
    fputs("</div>\n<div class=\"time-order\">\n", f);
    rows(f, l, l->packets, l->num_packets);
    fputs("</div>\n</body></html>\n", f);
    return err;
}
