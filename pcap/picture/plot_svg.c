// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/plot_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/picture/chart.h"
#include "pcap/picture/svg.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

enum {
    WIDTH = 1040,
    LEFT = 96, /* to the left edge of the charts */
    CHART_WIDTH = 916,
    TITLE = 60, /* height of the title of the plot */
    HEADING = 52, /* of a queue pair, with the legend */
    PSN_HEIGHT = 220,
    SMALL_HEIGHT = 110, /* of the other charts */
    SPACE = 28, /* between two charts */
    FOOT = 42, /* below the last chart */
};

static const char style[] =
    "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}"
    ".title{font-size:15px;font-weight:600}.sub,.key{fill:#57606a}.qp{font-weight:600;font-size:13px}"
    ".tick{font-size:11px;fill:#57606a;text-anchor:end}.tick.x{text-anchor:middle}.key,.what{font-size:11px}"
    ".frame{fill:none;stroke:#8c959f}.grid{stroke:#eaeef2;fill:none}"
    "path.dot{fill:none;stroke-width:4;stroke-linecap:round}path.dot.small{stroke-width:3}"
    "path.dot.bad{stroke-width:5.5}path.line{fill:none;stroke-width:1.5}"
    ".sent{stroke:#1f6feb}.answer{stroke:#8250df}.ack{stroke:#1a7f37}.again{stroke:#e36209}.bad{stroke:#cf222e}"
    ".nak{stroke:#bf3989}.trip{stroke:#0a7ea4}"
    "path.bar{stroke:none}.bar.sent{fill:#1f6feb}.bar.answer{fill:#8250df}.bar.again{fill:#e36209}.bar.bad{fill:#"
    "cf222e}";

/* One plot while it is written. */
struct canvas {
    FILE *f;
    const struct plot *p;
    uint8_t *seen; /* pixels of the largest chart */
};

static bool is_plain_ack(const struct trace_packet *k)
{
    return (k->opcode & OP_OPERATION_MASK) == OP_ACK && op_table[k->opcode].properties & OP_IS_RESPONSE;
}

/* Times count from the first packet of the capture. */
static uint64_t since_start(const struct plot *p, uint64_t ns)
{
    return ns > p->trace.start_ns ? ns - p->trace.start_ns : 0;
}

static void set_times(const struct canvas *c, struct chart *chart, int y, int height)
{
    *chart = (struct chart){.x = LEFT,
                            .y = y,
                            .width = CHART_WIDTH,
                            .height = height,
                            .x_low = since_start(c->p, c->p->low_ns),
                            .x_high = since_start(c->p, c->p->high_ns),
                            .seen = c->seen};
    if (chart->x_high == chart->x_low)
        chart->x_high++;
    memset(c->seen, 0, chart_pixels(chart));
}

/* Keeps the largest values off the upper edge. */
static void add_room(struct chart *c)
{
    c->y_high += (c->y_high - c->y_low) / 16;
}

/* --- sequence numbers --------------------------------------------------------------------------------------------- */

enum series {
    SENT,
    ANSWERS, /* READ and atomic responses */
    ACKS, /* a line: PSNs below it are acknowledged */
    AGAIN,
    NAKS,
    LOST,
    SERIES,
};
static const char *const series_class[SERIES] = {"dot sent",  "dot answer", "line ack",
                                                 "dot again", "dot nak",    "dot bad"};

static enum series series_of(const struct trace_packet *k, enum plot_side side)
{
    if (k->marks & TRACE_LOST)
        return LOST;
    if (k->sack != TRACE_NONE)
        return NAKS;
    if (side == PLOT_RESPONSE && is_plain_ack(k))
        return (k->syndrome & AETH_KIND_MASK) == AETH_ACK ? ACKS : NAKS;
    if (k->marks & TRACE_AGAIN)
        return AGAIN;
    return side == PLOT_RESPONSE ? ANSWERS : SENT;
}

static void draw_psns(struct canvas *c, const struct plot_qp *qp, int y, bool with_times)
{
    char title[100];
    struct chart chart;

    set_times(c, &chart, y, PSN_HEIGHT);
    chart.y_low = qp->psn_low;
    chart.y_high = qp->psn_high > qp->psn_low ? qp->psn_high : qp->psn_low + 1;
    add_room(&chart);
    snprintf(title, sizeof(title), "sequence number: PSN minus %u", (unsigned)(qp->psn_low & PSN_MASK));
    chart_draw_frame(c->f, &chart, title, with_times);
    for (enum series s = 0; s < SERIES; s++) {
        uint64_t acked = 0;

        chart_begin_series(c->f, &chart, series_class[s]);
        for (size_t i = 0; i < c->p->trace.num_packets; i++) {
            const struct trace_packet *k = &c->p->trace.packets[i];
            enum plot_side side = plot_side(c->p, qp, k);
            uint64_t x = since_start(c->p, k->time_ns);

            if (side == PLOT_NOT || series_of(k, side) != s)
                continue;
            if (s != ACKS)
                chart_point(c->f, &chart, x, k->psn);
            else if (k->psn >= acked)
                chart_step(c->f, &chart, x, acked = k->psn);
        }
        chart_end_series(c->f, &chart);
    }
}

/* --- throughput --------------------------------------------------------------------------------------------------- */

static uint64_t bin_value(const struct plot_bin *b, unsigned series)
{
    return series == 0 ? b->sent : series == 1 ? b->read : series == 2 ? b->again : b->lost;
}

/* Bits per second. */
static uint64_t rate(const struct plot *p, uint64_t bytes)
{
    return (uint64_t)((double)bytes * 8e9 / (double)plot_bin_ns(p));
}

static void draw_throughput(struct canvas *c, const struct plot_qp *qp, int y, bool with_times)
{
    static const char *const classes[] = {"bar sent", "bar answer", "bar again", "bar bad"};
    uint64_t width = plot_bin_ns(c->p), below[PLOT_BINS] = {0};
    struct chart chart;

    set_times(c, &chart, y, SMALL_HEIGHT);
    chart.unit = CHART_BITS;
    chart.y_high = 1;
    for (unsigned i = 0; i < PLOT_BINS; i++) {
        const struct plot_bin *b = &qp->bins[i];
        uint64_t all = rate(c->p, b->sent + b->read + b->again + b->lost);

        chart.y_high = all > chart.y_high ? all : chart.y_high;
    }
    add_room(&chart);
    chart_draw_frame(c->f, &chart, "throughput: payload of both directions", with_times);
    for (unsigned s = 0; s < 4; s++) {
        chart_begin_series(c->f, &chart, classes[s]);
        for (unsigned i = 0; i < PLOT_BINS; i++) {
            uint64_t value = rate(c->p, bin_value(&qp->bins[i], s)), x = chart.x_low + i * width;

            if (value)
                chart_bar(c->f, &chart, x, x + width, below[i], below[i] + value);
            below[i] += value;
        }
        chart_end_series(c->f, &chart);
    }
}

/* --- round trips -------------------------------------------------------------------------------------------------- */

#define TRIPS_TITLE_MAX 240

static int by_duration(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Writes the title, with a few numbers. */
static int trips_title(char title[TRIPS_TITLE_MAX], const struct plot_qp *qp)
{
    uint64_t *sorted = calloc(qp->num_trips + 1, sizeof(*sorted));
    char median[SVG_NUMBER_MAX], high[SVG_NUMBER_MAX], largest[SVG_NUMBER_MAX], percentile[SVG_NUMBER_MAX + 16] = "";
    size_t n = qp->num_trips;

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = qp->trips[i].trip_ns;
    qsort(sorted, n, sizeof(*sorted), by_duration);
    if (n >= 100)
        snprintf(percentile, sizeof(percentile), ", 99 %% within %s", svg_duration(high, sorted[n * 99 / 100]));
    snprintf(title, TRIPS_TITLE_MAX, "round trips: from a request to its response; median %s%s, largest %s",
             svg_duration(median, sorted[n / 2]), percentile, svg_duration(largest, sorted[n - 1]));
    free(sorted);
    return 0;
}

static int draw_trips(struct canvas *c, const struct plot_qp *qp, int y)
{
    struct chart chart;
    char title[TRIPS_TITLE_MAX];

    set_times(c, &chart, y, SMALL_HEIGHT);
    chart.unit = CHART_TIME;
    chart.y_high = 1;
    for (size_t i = 0; i < qp->num_trips; i++)
        chart.y_high = qp->trips[i].trip_ns > chart.y_high ? qp->trips[i].trip_ns : chart.y_high;
    add_room(&chart);
    if (trips_title(title, qp) != 0)
        return -ENOMEM;
    chart_draw_frame(c->f, &chart, title, true);
    chart_begin_series(c->f, &chart, "dot small trip");
    for (size_t i = 0; i < qp->num_trips; i++)
        chart_point(c->f, &chart, since_start(c->p, qp->trips[i].time_ns), qp->trips[i].trip_ns);
    chart_end_series(c->f, &chart);
    return 0;
}

/* --- queue pairs -------------------------------------------------------------------------------------------------- */

static void draw_end(FILE *f, const struct trace *t, uint32_t host, uint32_t qpn)
{
    char address[TRACE_ADDRESS_MAX];

    trace_address(t->hosts[host]->address, address);
    svg_printf(f, qpn ? "%s QP 0x%06" PRIx32 : "%s", address, qpn);
}

static void draw_heading(const struct canvas *c, const struct plot_qp *qp, int y)
{
    const struct trace_flow *flow = c->p->trace.flows[qp->flow];
    char number[SVG_NUMBER_MAX];

    fprintf(c->f, "<text class=\"qp\" x=\"%d\" y=\"%d\">", LEFT, y + 14);
    draw_end(c->f, &c->p->trace, flow->key.src, flow->qpn_of_sender);
    fputs(" \xe2\x86\x92 ", c->f);
    draw_end(c->f, &c->p->trace, flow->key.dst, flow->key.qpn);
    fputs(" <tspan class=\"sub\" dx=\"8\" font-weight=\"400\">", c->f);
    if (flow->comm[0])
        svg_printf(c->f, "%s, ", flow->comm);
    svg_printf(c->f, "%s bytes", svg_number(number, qp->bytes));
    if (qp->lost)
        svg_printf(c->f, ", %s lost", svg_number(number, qp->lost));
    if (qp->again)
        svg_printf(c->f, ", %s retransmission%s", svg_number(number, qp->again), qp->again == 1 ? "" : "s");
    fputs("</tspan></text>\n", c->f);
}

/* The meaning of the colours that the queue pair uses. */
static void draw_legend(const struct canvas *c, const struct plot_qp *qp, int y)
{
    static const char *const texts[SERIES] = {
        "request", "READ or atomic response", "acknowledged", "retransmission", "NAK", "lost"};
    bool used[SERIES] = {false};
    int x = LEFT + CHART_WIDTH;

    for (size_t i = 0; i < c->p->trace.num_packets; i++) {
        enum plot_side side = plot_side(c->p, qp, &c->p->trace.packets[i]);

        if (side != PLOT_NOT)
            used[series_of(&c->p->trace.packets[i], side)] = true;
    }
    for (unsigned s = SERIES; s > 0; s--) {
        if (!used[s - 1])
            continue;
        x -= 26 + (int)strlen(texts[s - 1]) * 6;
        fprintf(c->f, "<path class=\"%s\" d=\"M%d %dh%d\"/><text class=\"key\" x=\"%d\" y=\"%d\">%s</text>\n",
                series_class[s - 1], x - (s - 1 == ACKS ? 6 : 0), y + 41, s - 1 == ACKS ? 12 : 0, x + 8, y + 45,
                texts[s - 1]);
    }
}

static int height_of(const struct plot_qp *qp)
{
    return HEADING + PSN_HEIGHT + SPACE + SMALL_HEIGHT + (qp->num_trips ? SPACE + SMALL_HEIGHT : 0) + FOOT;
}

static int draw_qp(struct canvas *c, const struct plot_qp *qp, int y)
{
    bool trips = qp->num_trips != 0;

    draw_heading(c, qp, y);
    draw_legend(c, qp, y);
    y += HEADING;
    draw_psns(c, qp, y, false);
    y += PSN_HEIGHT + SPACE;
    draw_throughput(c, qp, y, !trips);
    return trips ? draw_trips(c, qp, y + SMALL_HEIGHT + SPACE) : 0;
}

static void draw_title(const struct canvas *c)
{
    const struct plot *p = c->p;
    char time[SVG_NUMBER_MAX];

    fputs("<text class=\"title\" x=\"20\" y=\"26\">", c->f);
    svg_text(c->f, p->name);
    fputs("</text><text class=\"sub\" x=\"20\" y=\"44\">", c->f);
    svg_printf(c->f, "%zu queue pair%s in %s. The times count from the first packet of the capture.", p->num_qps,
               p->num_qps == 1 ? "" : "s", svg_duration(time, p->high_ns - p->low_ns));
    if (p->all_qps > p->num_qps)
        svg_printf(c->f, " These sent the most requests of %zu.", p->all_qps);
    if (p->trace.icrc_unknown)
        svg_printf(c->f, " Most ICRCs are wrong, so damaged packets are not known.");
    if (p->trace.unmerged)
        svg_printf(c->f, " Packets that GSO or GRO merged are missing.");
    if (p->trace.error[0])
        svg_printf(c->f, " The end of the file can't be read.");
    fputs("</text>\n", c->f);
}

int plot_svg(FILE *f, const struct plot *p)
{
    struct canvas c = {f, p, calloc((CHART_WIDTH + 1) * (PSN_HEIGHT + 1), 1)};
    int height = TITLE, y = TITLE, err = 0;

    if (!c.seen)
        return -ENOMEM;
    for (size_t i = 0; i < p->num_qps; i++)
        height += height_of(&p->qps[i]);
    fprintf(
        f,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
        "height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>%s</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        WIDTH, height, WIDTH, height, style, WIDTH, height);
    draw_title(&c);
    for (size_t i = 0; i < p->num_qps && !err; i++) {
        err = draw_qp(&c, &p->qps[i], y);
        y += height_of(&p->qps[i]);
    }
    fputs("</svg>\n", f);
    free(c.seen);
    return err;
}
