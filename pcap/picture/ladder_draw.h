// SPDX-License-Identifier: BSD-2-Clause
/* Draws the parts of a ladder as SVG elements: the heads of the columns, their lines, arrows, bands. All parts of a ladder
 * have the same width and the same columns, so that they fit below each other. */
#ifndef PUMICE_PCAP_PICTURE_LADDER_DRAW_H
#define PUMICE_PCAP_PICTURE_LADDER_DRAW_H

#include "pcap/picture/ladder.h"

#define LADDER_HEAD 64 /* pixels: height of the heads of columns */
#define LADDER_BAND 34 /* height of the band of a folded exchange */
#define LADDER_LEGEND 30 /* height of the legend */

/* The style sheet of all parts. */
extern const char ladder_style[];

/* Width of the ladder in pixels. */
int ladder_width(const struct ladder *l);

/* The heads of the columns: addresses and programs. */
void ladder_draw_heads(FILE *f, const struct ladder *l, int y);

/* The lines of the columns, from y to y plus height. */
void ladder_draw_lines(FILE *f, const struct ladder *l, int y, int height);

/* Height of the rows of these packets. */
int ladder_rows_height(const struct ladder *l, const uint32_t *packets, uint32_t n);

/* One row with an arrow for each packet. */
void ladder_draw_rows(FILE *f, const struct ladder *l, const uint32_t *packets, uint32_t n, int y);

/* The coloured area behind the rows of an exchange. */
void ladder_draw_area(FILE *f, const struct ladder *l, const struct exchange *x, int y, int height);

/* The band of a folded exchange. */
void ladder_draw_band(FILE *f, const struct ladder *l, const struct exchange *x, int y);

/* The colours that the ladder uses, with their meaning. */
void ladder_draw_legend(FILE *f, const struct ladder *l, int y);

/* One or two sentences about what is in the picture, as plain text. */
#define LADDER_SUMMARY_MAX 512
void ladder_summary(char text[LADDER_SUMMARY_MAX], const struct ladder *l);

#endif
