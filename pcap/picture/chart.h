// SPDX-License-Identifier: BSD-2-Clause
/* Draws a chart as SVG elements: a frame with ticks on both axes, points, steps and bars. All positions are whole pixels,
 * and a pixel is drawn once for each series, so that the size of the output does not depend on the number of values. */
#ifndef PUMICE_PCAP_PICTURE_CHART_H
#define PUMICE_PCAP_PICTURE_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum chart_unit {
    CHART_NUMBER,
    CHART_BITS, /* bits per second */
    CHART_TIME, /* nanoseconds */
};

struct chart {
    int x, y, width, height; /* of the area for values, in pixels */
    uint64_t x_low, x_high; /* nanoseconds */
    uint64_t y_low, y_high;
    enum chart_unit unit; /* of y */
    uint8_t *seen; /* a byte for each pixel: the number of the newest series that has a point there */
    uint8_t series;
    bool is_open; /* a path has begun */
    int last_x, last_y; /* end of the steps so far */
};

/* Bytes of a chart's `seen`. */
size_t chart_pixels(const struct chart *c);

/* The frame, and lines with numbers for y; for x only if with_times is true. title stands above. */
void chart_draw_frame(FILE *f, const struct chart *c, const char *title, bool with_times);

/* Begins a series of points. Between this and chart_end_series, only the following functions write to f. */
void chart_begin_series(FILE *f, struct chart *c, const char *class);
void chart_end_series(FILE *f, struct chart *c);

/* A dot. Values outside of the axes are moved to the edge. */
void chart_point(FILE *f, struct chart *c, uint64_t x, uint64_t y);

/* A step of a line that changes its value at x. */
void chart_step(FILE *f, struct chart *c, uint64_t x, uint64_t y);

/* A bar from x1 to x2 and from y1 to y2. */
void chart_bar(FILE *f, struct chart *c, uint64_t x1, uint64_t x2, uint64_t y1, uint64_t y2);

/* Writes a value with its unit, as at the axes: "1.5 Gbit/s". Returns text. */
#define CHART_VALUE_MAX 40
const char *chart_value(char text[CHART_VALUE_MAX], enum chart_unit unit, uint64_t value);

#endif
