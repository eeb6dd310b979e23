// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/chart.h"

#include <stddef.h>

#include "pcap/picture/svg.h"

#define TICK_X 110 /* pixels between two ticks, at least */
#define TICK_Y 28

/* A unit, and the number of basic units in it. */
struct scale {
    const char *name;
    double factor;
};

static const struct scale bits[] = {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}};
static const struct scale times[] = {{"ns", 1}, {"\xc2\xb5s", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/* The largest unit that is not above the value. */
static const struct scale *scale_of(enum chart_unit unit, uint64_t value)
{
    const struct scale *list = unit == CHART_BITS ? bits : times;
    size_t n = unit == CHART_BITS ? sizeof(bits) / sizeof(bits[0]) : sizeof(times) / sizeof(times[0]);

    while (n > 1 && list[n - 1].factor > (double)value)
        n--;
    return &list[n - 1];
}

const char *chart_value(char text[CHART_VALUE_MAX], enum chart_unit unit, uint64_t value)
{
    if (unit == CHART_NUMBER)
        return svg_number(text, value);
    const struct scale *s = scale_of(unit, value);
    snprintf(text, CHART_VALUE_MAX, "%.3g %s", (double)value / s->factor, value ? s->name : "");
    return text;
}

size_t chart_pixels(const struct chart *c)
{
    return (size_t)(c->width + 1) * (size_t)(c->height + 1);
}

/* The pixel of a value between low and high; 0 … pixels. */
static int place(uint64_t value, uint64_t low, uint64_t high, int pixels)
{
    if (value <= low || high <= low)
        return 0;
    if (value >= high)
        return pixels;
    return (int)((double)(value - low) / (double)(high - low) * pixels + 0.5);
}

static int x_of(const struct chart *c, uint64_t x)
{
    return place(x, c->x_low, c->x_high, c->width);
}

/* Pixels from the upper edge. */
static int y_of(const struct chart *c, uint64_t y)
{
    return c->height - place(y, c->y_low, c->y_high, c->height);
}

/* The distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most `most` in the range. */
static uint64_t step_of(uint64_t range, int most)
{
    uint64_t step = 1;

    for (unsigned i = 0; range / step > (uint64_t)most && step <= UINT64_MAX / 10; i++)
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

/* --- axes --------------------------------------------------------------------------------------------------------- */

static void draw_y_axis(FILE *f, const struct chart *c)
{
    uint64_t range = c->y_high - c->y_low, step = step_of(range, c->height / TICK_Y);
    char text[CHART_VALUE_MAX];

    for (uint64_t v = 0; v <= range; v += step) {
        int y = c->y + y_of(c, c->y_low + v);

        fprintf(f, "<path class=\"grid\" d=\"M%d %dh%d\"/><text class=\"tick\" x=\"%d\" y=\"%d\">%s</text>\n", c->x, y,
                c->width, c->x - 8, y + 4, chart_value(text, c->unit, v));
        if (range - v < step)
            break;
    }
}

static void draw_x_axis(FILE *f, const struct chart *c, bool with_times)
{
    uint64_t range = c->x_high - c->x_low, step = step_of(range, c->width / TICK_X);
    const struct scale *s = scale_of(CHART_TIME, c->x_high);

    for (uint64_t v = (c->x_low + step - 1) / step * step; v <= c->x_high; v += step) {
        int x = c->x + x_of(c, v);

        fprintf(f, "<path class=\"grid\" d=\"M%d %dv%d\"/>", x, c->y, c->height);
        if (with_times)
            fprintf(f, "<text class=\"tick x\" x=\"%d\" y=\"%d\">%.6g %s</text>", x, c->y + c->height + 17,
                    (double)v / s->factor, s->name);
        fputc('\n', f);
        if (c->x_high - v < step)
            break;
    }
}

void chart_draw_frame(FILE *f, const struct chart *c, const char *title, bool with_times)
{
    draw_y_axis(f, c);
    draw_x_axis(f, c, with_times);
    fprintf(f, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", c->x, c->y, c->width, c->height);
    fprintf(f, "<text class=\"what\" x=\"%d\" y=\"%d\">", c->x, c->y - 7);
    svg_text(f, title);
    fputs("</text>\n", f);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

void chart_begin_series(FILE *f, struct chart *c, const char *class)
{
    c->series++;
    c->is_open = false;
    fprintf(f, "<path class=\"%s\" d=\"M0 0", class);
}

void chart_end_series(FILE *f, struct chart *c)
{
    if (c->is_open)
        fprintf(f, "H%d", c->x + c->last_x);
    c->is_open = false;
    fputs("\"/>\n", f);
}

void chart_point(FILE *f, struct chart *c, uint64_t x, uint64_t y)
{
    int px = x_of(c, x), py = y_of(c, y);
    uint8_t *seen = &c->seen[(size_t)py * (size_t)(c->width + 1) + (size_t)px];

    if (*seen == c->series)
        return;
    *seen = c->series;
    fprintf(f, "M%d %dh0", c->x + px, c->y + py);
}

void chart_step(FILE *f, struct chart *c, uint64_t x, uint64_t y)
{
    int px = x_of(c, x), py = y_of(c, y);

    if (!c->is_open) {
        fprintf(f, "M%d %d", c->x + px, c->y + py);
        c->is_open = true;
    } else if (py != c->last_y) {
        fprintf(f, "H%dV%d", c->x + px, c->y + py);
    }
    c->last_x = px;
    c->last_y = py;
}

void chart_bar(FILE *f, struct chart *c, uint64_t x1, uint64_t x2, uint64_t y1, uint64_t y2)
{
    int left = x_of(c, x1), right = x_of(c, x2), bottom = y_of(c, y1), top = y_of(c, y2);

    if (bottom > top)
        fprintf(f, "M%d %dH%dV%dH%dz", c->x + left, c->y + bottom, c->x + (right > left ? right : left + 1), c->y + top,
                c->x + left);
}
