// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: pictures of captures. The input is the bytes of a file, or the packets of one (fuzz_capture.h). The
 * sanitizers detect reads out of bounds. The target checks that each packet of the picture has one row, also when its
 * exchange is folded, and that no byte that XML does not allow comes out. */
#include <errno.h>
#include <stdlib.h>

#include "pcap/picture/ladder.h"
#include "pcap/picture/ladder_html.h"
#include "pcap/picture/ladder_svg.h"
#include "pcap/picture/plot.h"
#include "pcap/picture/plot_svg.h"
#include "tests/fuzz/fuzz_capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

static void check_text(const char *text, size_t len, size_t rows)
{
    must(strlen(text) == len && count(text, "<g class=\"row ") == rows);
    must(count(text, "<svg") == count(text, "</svg>"));
    for (size_t i = 0; i < len; i++)
        must((unsigned char)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t');
}

static void draw(const struct ladder *l)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    must(f != NULL);
    ladder_svg(f, l);
    fclose(f);
    check_text(text, len, l->num_packets);
    free(text);
    f = open_memstream(&text, &len);
    must(f != NULL);
    must(ladder_html(f, l) == 0);
    fclose(f);
    check_text(text, len, 2 * (size_t)l->num_packets);
    free(text);
}

static void plot(const uint8_t *data, size_t size, const struct trace_options *options, uint32_t most)
{
    struct plot p;
    char *text = NULL;
    size_t len = 0;
    FILE *f = fmemopen((void *)data, size, "rb");
    int err;

    must(f != NULL);
    err = plot_read(&p, f, "a capture", options, most);
    must(err == 0 || err == -EINVAL || err == -ENODATA);
    must(p.num_qps <= most && p.num_qps <= p.all_qps);
    f = open_memstream(&text, &len);
    must(f != NULL);
    if (p.num_qps)
        must(plot_svg(f, &p) == 0);
    fclose(f);
    check_text(text, len, 0);
    free(text);
    plot_free(&p);
}

static void picture(const uint8_t *data, size_t size, const struct trace_options *options, uint32_t most)
{
    struct ladder l;
    FILE *f;
    int err;

    if (size == 0)
        return;
    f = fmemopen((void *)data, size, "rb");
    must(f != NULL);
    err = ladder_read(&l, f, "a capture", options, most);
    must(err == 0 || err == -EINVAL || err == -ENODATA || err == -E2BIG);
    must(l.num_packets <= most && l.num_packets <= l.wanted);
    if (l.num_packets && !l.too_many)
        draw(&l);
    ladder_free(&l);
    plot(data, size, options, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[FUZZ_CAPTURE_MAX];
    struct trace_options options = {.num_qps = size % 3 ? 0 : 1, .qps = {1}};

    picture(data, size, &(struct trace_options){.num_qps = 0}, 50);
    if (size)
        options.from = (struct trace_place){data[0] & 4, data[0] & 8, data[0] & 8 ? 100000000 : 2};
    picture(file, fuzz_capture(file, data, size), &options, 200);
    return 0;
}
