// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/ladder_draw.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "pcap/picture/packet_text.h"
#include "pcap/picture/svg.h"

enum {
    TIME_RIGHT = 92, /* right end of the times */
    FIRST_COLUMN = 200,
    HEAD_HALF = 95, /* half of the width of a head */
    NOTES = 124, /* from the last column to the remarks */
    NOTES_WIDTH = 350,
    ROW = 34,
    ARROW = 22, /* from the top of a row to the beginning of its arrow */
    SLOPE = 6, /* an arrow ends lower than it begins */
    GAP_MAX = 40, /* pixels for the time between two rows; then the lines of the columns have a break */
    LOOP = 46, /* width of the arrow of a packet that an end sends to itself */
};

const char ladder_style[] =
    "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}"
    ".time{text-anchor:end;fill:#57606a;font-size:11px;font-variant-numeric:tabular-nums}"
    ".note{font-size:11px;fill:#57606a}.frame{fill:#8c959f}.bad{fill:#cf222e;font-weight:600}"
    ".twice{fill:#bc4c00;font-weight:600}"
    ".life{stroke:#afb8c1;stroke-width:1.5}.gap{stroke:#fff;stroke-width:5;stroke-dasharray:3 3}"
    ".head{fill:#f6f8fa;stroke:#afb8c1}.host{font-weight:600;font-size:13px;text-anchor:middle}"
    ".who{font-size:11px;fill:#57606a;text-anchor:middle}"
    ".label{text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}"
    ".label.loop{text-anchor:start}"
    ".title{font-size:15px;font-weight:600}.sub{fill:#57606a}"
    ".row .hit{fill:transparent}.row:hover .hit{fill:#0969da;fill-opacity:.07}"
    ".row path,.key path{fill:none;stroke-width:1.8}.row polygon{stroke:none}"
    ".again path{stroke-dasharray:8 3}.lost path.line{stroke-dasharray:3 4}"
    ".row path.cross,.key path.cross{stroke:#cf222e;stroke-width:2.4;stroke-dasharray:none}"
    ".band{stroke-width:1.2;fill-opacity:.13}.area{fill-opacity:.06;stroke:none}"
    ".send path,.band.send{stroke:#1f6feb}.send polygon,.band.send,.area.send{fill:#1f6feb}"
    ".write path,.band.write{stroke:#1a7f37}.write polygon,.band.write,.area.write{fill:#1a7f37}"
    ".read path,.band.read{stroke:#8250df}.read polygon,.band.read,.area.read{fill:#8250df}"
    ".atomic path,.band.atomic{stroke:#bc4c00}.atomic polygon,.band.atomic,.area.atomic{fill:#bc4c00}"
    ".ack path,.band.ack{stroke:#8c959f}.ack polygon,.band.ack,.area.ack{fill:#8c959f}"
    ".ack .label{fill:#57606a}"
    ".nak path{stroke:#cf222e}.nak polygon{fill:#cf222e}.nak .label{fill:#cf222e}"
    ".cm path,.band.cm{stroke:#0a7ea4}.cm polygon,.band.cm,.area.cm{fill:#0a7ea4}"
    ".datagram path,.band.datagram{stroke:#57606a}.datagram polygon,.band.datagram,.area.datagram{fill:#57606a}"
    ".cnp path{stroke:#bf8700}.cnp polygon{fill:#bf8700}";

/* --- columns ------------------------------------------------------------------------------------------------------ */

static int column_x(const struct ladder *l, uint32_t column)
{
    int distance = l->num_columns <= 2 ? 420 : l->num_columns == 3 ? 320 : 250;

    return FIRST_COLUMN + (int)column * distance;
}

static int notes_x(const struct ladder *l)
{
    return column_x(l, l->num_columns ? l->num_columns - 1 : 0) + NOTES;
}

int ladder_width(const struct ladder *l)
{
    return notes_x(l) + NOTES_WIDTH;
}

/* The program at a column, and the number of further ones. */
static const struct trace_flow *program_of(const struct ladder *l, uint32_t column, uint32_t *more)
{
    const struct trace_flow *found = NULL;

    *more = 0;
    for (size_t i = 0; i < l->trace.num_flows; i++) {
        const struct trace_flow *flow = l->trace.flows[i];

        if (l->of_flow[i].src != column || !flow->pid || (found && flow->pid == found->pid))
            continue;
        *more += found != NULL;
        found = found ? found : flow;
    }
    return found;
}

void ladder_draw_heads(FILE *f, const struct ladder *l, int y)
{
    char address[TRACE_ADDRESS_MAX];
    uint32_t more;

    fprintf(f,
            "<text class=\"time\" x=\"%d\" y=\"%d\">seconds</text><text class=\"note\" x=\"%d\" y=\"%d\">frame and "
            "message</text>\n",
            TIME_RIGHT, y + 36, notes_x(l), y + 36);
    for (uint32_t i = 0; i < l->num_columns; i++) {
        const struct ladder_column *c = &l->columns[i];
        const struct trace_flow *flow = program_of(l, i, &more);
        int x = column_x(l, i);

        trace_address(l->trace.hosts[c->host]->address, address);
        fprintf(f, "<rect class=\"head\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"46\" rx=\"7\"/>", x - HEAD_HALF, y + 8,
                2 * HEAD_HALF);
        fprintf(f, "<text class=\"host\" x=\"%d\" y=\"%d\"%s>", x, y + (flow || c->qpn ? 27 : 36),
                strlen(address) > 24 ? " textLength=\"180\" lengthAdjust=\"spacingAndGlyphs\"" : "");
        svg_text(f, address);
        fputs("</text>", f);
        if (!flow && !c->qpn)
            continue;
        fprintf(f, "<text class=\"who\" x=\"%d\" y=\"%d\">", x, y + 44);
        if (c->qpn)
            svg_printf(f, "QP 0x%06" PRIx32 "%s", c->qpn, flow ? ", " : "");
        if (flow)
            svg_printf(f, "%s", flow->comm[0] ? flow->comm : "process");
        if (flow && more)
            svg_printf(f, " and %" PRIu32 " more", more);
        else if (flow && !c->qpn)
            svg_printf(f, " (pid %" PRIu32 ")", flow->pid);
        fputs("</text>\n", f);
    }
}

void ladder_draw_lines(FILE *f, const struct ladder *l, int y, int height)
{
    for (uint32_t i = 0; i < l->num_columns; i++)
        fprintf(f, "<line class=\"life\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>", column_x(l, i), y, column_x(l, i),
                y + height);
    fputc('\n', f);
}

/* --- arrows ------------------------------------------------------------------------------------------------------- */

static void draw_cross(FILE *f, int x, int y)
{
    fprintf(f, "<path class=\"cross\" d=\"M%d %dl10 10m0 -10l-10 10\"/>", x - 5, y - 5);
}

/* An arrow from one column to another. That of a lost packet breaks off. */
static void draw_arrow(FILE *f, int x1, int x2, int y, bool lost, bool damaged)
{
    int direction = x2 > x1 ? 1 : -1, tip = x2 - direction, end = y + SLOPE;

    if (lost) {
        tip = x1 + (x2 - x1) * 62 / 100;
        end = y + SLOPE * 62 / 100;
        fprintf(f, "<path class=\"line\" d=\"M%d %dL%d %d\"/>", x1, y, tip, end);
        draw_cross(f, tip + direction * 8, end);
        return;
    }
    fprintf(f, "<path class=\"line\" d=\"M%d %dL%d %d\"/><polygon points=\"%d,%d %d,%d %d,%d\"/>", x1, y,
            tip - direction * 8, end, tip, end, tip - direction * 10, end - 5, tip - direction * 10, end + 5);
    if (damaged)
        draw_cross(f, tip - direction * 24, end);
}

/* The arrow of a packet that an end sends to itself. */
static void draw_loop(FILE *f, int x, int y, bool lost)
{
    fprintf(f, "<path class=\"line\" d=\"M%d %dh%dv10%s\"/>", x, y - 4, LOOP, lost ? "" : "h-36");
    if (lost)
        draw_cross(f, x + LOOP, y + 12);
    else
        fprintf(f, "<polygon points=\"%d,%d %d,%d %d,%d\"/>", x + 1, y + 6, x + 11, y + 1, x + 11, y + 11);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Pixels for the time between two rows: none up to 10 us, then some for each power of ten. */
static int gap(uint64_t before_ns, uint64_t now_ns)
{
    uint64_t ns = now_ns > before_ns ? now_ns - before_ns : 0;
    int pixels = 0;

    for (uint64_t step = 10000; ns >= step && pixels < GAP_MAX; step *= 10)
        pixels += 10;
    return pixels;
}

static int row_height(const struct ladder *l, const uint32_t *packets, uint32_t i)
{
    const struct trace_packet *all = l->trace.packets;

    return ROW + (i ? gap(all[packets[i - 1]].time_ns, all[packets[i]].time_ns) : 0);
}

int ladder_rows_height(const struct ladder *l, const uint32_t *packets, uint32_t n)
{
    int height = 4;

    for (uint32_t i = 0; i < n; i++)
        height += row_height(l, packets, i);
    return height;
}

static void draw_time(FILE *f, const struct ladder *l, uint64_t time_ns, int y)
{
    char time[SVG_NUMBER_MAX];
    uint64_t ns = time_ns > l->trace.start_ns ? time_ns - l->trace.start_ns : 0;

    snprintf(time, sizeof(time), "%" PRIu64 ".%06" PRIu64, ns / 1000000000, ns / 1000 % 1000000);
    fprintf(f, "<text class=\"time\" x=\"%d\" y=\"%d\">%s</text>", TIME_RIGHT, y, time);
}

/* The remarks at the right of a row. */
static void draw_notes(FILE *f, const struct ladder *l, uint32_t index, int y)
{
    const struct trace_packet *p = &l->trace.packets[index];
    char text[PACKET_TEXT_MAX], remark[PACKET_TEXT_MAX];
    uint32_t qpn = l->trace.flows[p->flow]->key.qpn;

    packet_remark(remark, &l->trace, index);
    packet_message(text, &l->trace, &l->messages, index);
    fprintf(f, "<text class=\"note\" x=\"%d\" y=\"%d\"><tspan class=\"frame\">%" PRIu32 "</tspan>", notes_x(l), y,
            p->frame);
    if (text[0]) {
        fputs("<tspan dx=\"8\">", f);
        svg_text(f, text);
        fputs("</tspan>", f);
    }
    if (l->many_connections && qpn != MAD_QPN)
        fprintf(f, "<tspan dx=\"8\" class=\"frame\">QP 0x%06" PRIx32 "</tspan>", qpn);
    fputs("</text>\n", f);
    if (!remark[0])
        return;
    fprintf(f, "<text class=\"note %s\" x=\"%d\" y=\"%d\">", p->marks & (TRACE_LOST | TRACE_DAMAGED) ? "bad" : "twice",
            notes_x(l), y + 13);
    svg_text(f, remark);
    fputs("</text>\n", f);
}

static void draw_row(FILE *f, const struct ladder *l, uint32_t index, int y)
{
    const struct trace_packet *p = &l->trace.packets[index];
    const struct ladder_ends *ends = &l->of_flow[p->flow];
    int x1 = column_x(l, ends->src), x2 = column_x(l, ends->dst);
    bool lost = p->marks & TRACE_LOST, damaged = p->marks & TRACE_DAMAGED;
    char label[PACKET_TEXT_MAX], details[PACKET_DETAILS_MAX];

    packet_details(details, &l->trace, &l->messages, index);
    packet_label(label, &l->trace, p);
    fprintf(f, "<g class=\"row %s%s%s\"><title>", packet_class_name(packet_class(p)),
            p->marks & TRACE_AGAIN ? " again" : "", lost ? " lost" : "");
    svg_text(f, details);
    fprintf(f, "</title><rect class=\"hit\" x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"/>", y + 1, ladder_width(l),
            ROW - 1);
    draw_time(f, l, p->time_ns, y + ARROW - 2);
    if (x1 == x2) {
        draw_loop(f, x1, y + ARROW, lost);
        fprintf(f, "<text class=\"label loop\" x=\"%d\" y=\"%d\">", x1 + LOOP + 8, y + ARROW + 5);
    } else {
        draw_arrow(f, x1, x2, y + ARROW, lost, damaged);
        fprintf(f, "<text class=\"label\" x=\"%d\" y=\"%d\">", (x1 + x2) / 2, y + ARROW - 5);
    }
    svg_text(f, label);
    fputs("</text>", f);
    draw_notes(f, l, index, y + ARROW - 2);
    fputs("</g>\n", f);
}

void ladder_draw_rows(FILE *f, const struct ladder *l, const uint32_t *packets, uint32_t n, int y)
{
    for (uint32_t i = 0; i < n; i++) {
        int height = row_height(l, packets, i);

        for (uint32_t c = 0; c < l->num_columns && height - ROW >= GAP_MAX; c++)
            fprintf(f, "<line class=\"gap\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>", column_x(l, c), y + 12,
                    column_x(l, c), y + height - ROW);
        y += height;
        draw_row(f, l, packets[i], y - ROW);
    }
}

/* --- exchanges ---------------------------------------------------------------------------------------------------- */

/* The class of an exchange in the style sheet. */
static const char *exchange_class(const struct exchange *x)
{
    static const char *const names[EXCHANGE_KINDS] = {
        "ack", "send", "write", "read", "atomic", "datagram", "read", "cm", "cm", "cm",
    };

    return names[x->kind];
}

/* The leftmost and the rightmost column of an exchange. */
static void extent(const struct ladder *l, const struct exchange *x, int *left, int *right)
{
    uint32_t low = LADDER_COLUMNS_MAX, high = 0;

    for (uint32_t i = 0; i < x->num_packets; i++) {
        const struct ladder_ends *ends = &l->of_flow[l->trace.packets[x->packets[i]].flow];
        uint32_t a = ends->src < ends->dst ? ends->src : ends->dst, b = ends->src < ends->dst ? ends->dst : ends->src;

        low = a < low ? a : low;
        high = b > high ? b : high;
    }
    *left = column_x(l, low) - 16;
    *right = column_x(l, high) + (low == high ? 300 : 16);
}

void ladder_draw_area(FILE *f, const struct ladder *l, const struct exchange *x, int y, int height)
{
    int left, right;

    extent(l, x, &left, &right);
    fprintf(f, "<rect class=\"area %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", exchange_class(x), left, y,
            right - left, height);
}

void ladder_draw_band(FILE *f, const struct ladder *l, const struct exchange *x, int y)
{
    const struct trace_packet *first = &l->trace.packets[x->packets[0]];
    const struct trace_packet *last = &l->trace.packets[x->packets[x->num_packets - 1]];
    char title[PACKET_TEXT_MAX], time[SVG_NUMBER_MAX];
    int left, right;

    extent(l, x, &left, &right);
    exchange_title(title, &l->trace, &l->messages, x);
    draw_time(f, l, first->time_ns, y + 22);
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#fff\"/>", left, y + 4, right - left,
            LADDER_BAND - 8);
    fprintf(f, "<rect class=\"band %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>", exchange_class(x),
            left, y + 4, right - left, LADDER_BAND - 8);
    fprintf(f, "<path class=\"closed\" d=\"M%d %dl7 5l-7 5z\"/><path class=\"open\" d=\"M%d %dh10l-5 7z\"/>", left + 12,
            y + 12, left + 11, y + 14);
    fprintf(f, "<text x=\"%d\" y=\"%d\">", left + 28, y + 21);
    svg_text(f, title);
    fputs("</text>", f);
    fprintf(f, "<text class=\"note\" x=\"%d\" y=\"%d\">", notes_x(l), y + 21);
    svg_printf(f, "%" PRIu32 " packet%s in %s", x->num_packets, x->num_packets == 1 ? "" : "s",
               svg_duration(time, last->time_ns - first->time_ns));
    if (x->lost)
        fprintf(f, "<tspan class=\"bad\" dx=\"8\">%" PRIu32 " lost</tspan>", x->lost);
    if (x->again)
        fprintf(f, "<tspan class=\"twice\" dx=\"8\">%" PRIu32 " retransmission%s</tspan>", x->again,
                x->again == 1 ? "" : "s");
    fputs("</text>\n", f);
}

/* --- legend and summary ------------------------------------------------------------------------------------------- */

static int draw_key(FILE *f, int x, int y, const char *class, const char *text, bool lost)
{
    fprintf(f, "<g class=\"key %s\"><path class=\"line\" d=\"M%d %dh26\"/>", class, x, y - 4);
    if (lost)
        draw_cross(f, x + 28, y - 4);
    fprintf(f, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text></g>\n", x + (lost ? 38 : 32), y, text);
    return x + 56 + (lost ? 8 : 0) + (int)strlen(text) * 6;
}

void ladder_draw_legend(FILE *f, const struct ladder *l, int y)
{
    static const char *const texts[PACKET_CLASSES] = {
        "SEND", "WRITE", "READ", "atomic, FLUSH", "ACK", "NAK", "connection management", "datagram", "CNP",
    };
    bool used[PACKET_CLASSES] = {false};
    int x = 20;

    for (uint32_t i = 0; i < l->num_packets; i++)
        used[packet_class(&l->trace.packets[l->packets[i]])] = true;
    for (unsigned i = 0; i < PACKET_CLASSES; i++)
        if (used[i])
            x = draw_key(f, x, y + 18, packet_class_name(i), texts[i], false);
    if (l->lost)
        x = draw_key(f, x, y + 18, "ack lost", "lost or damaged", true);
    if (l->again)
        draw_key(f, x, y + 18, "ack again", "retransmission", false);
}

static void add(char text[LADDER_SUMMARY_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[LADDER_SUMMARY_MAX], const char *format, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text + used, LADDER_SUMMARY_MAX - used, format, ap);
    va_end(ap);
}

void ladder_summary(char text[LADDER_SUMMARY_MAX], const struct ladder *l)
{
    const struct trace *t = &l->trace;
    char number[SVG_NUMBER_MAX], other[SVG_NUMBER_MAX];
    uint64_t span = 0;

    text[0] = 0;
    if (l->num_packets)
        span = t->packets[l->packets[l->num_packets - 1]].time_ns - t->packets[l->packets[0]].time_ns;
    add(text, "%s packet%s in %s", svg_number(number, l->num_packets), l->num_packets == 1 ? "" : "s",
        svg_duration(other, span));
    if (l->lost)
        add(text, ", %s lost or damaged", svg_number(number, l->lost));
    if (l->again)
        add(text, ", %s retransmission%s", svg_number(number, l->again), l->again == 1 ? "" : "s");
    add(text, ".");
    if (l->wanted > l->num_packets)
        add(text, " These are the first of %s packets.", svg_number(number, l->wanted));
    if (t->faults)
        add(text, " Injected faults lost %s packet%s.", svg_number(number, t->faults), t->faults == 1 ? "" : "s");
    if (t->lost)
        add(text, " The capture itself lost %s packet%s.", svg_number(number, t->lost), t->lost == 1 ? "" : "s");
    if (t->icrc_unknown)
        add(text, " Most ICRCs are wrong, so damaged packets are not marked.");
    if (t->unmerged)
        add(text, " Packets that GSO or GRO merged are missing.");
    if (t->error[0])
        add(text, " The end of the file can't be read.");
}
