// SPDX-License-Identifier: BSD-2-Clause
/* Writes text and numbers into SVG and HTML. Nothing in a capture is trusted: all text of it goes through svg_text. */
#ifndef PUMICE_PCAP_PICTURE_SVG_H
#define PUMICE_PCAP_PICTURE_SVG_H

#include <stdint.h>
#include <stdio.h>

#define SVG_NUMBER_MAX 40 /* bytes of the text of a number, with the end */

/* Writes text as the contents of an element or of an attribute in double quotes. Bytes that are no UTF-8 or that XML does
 * not allow become U+FFFD. */
void svg_text(FILE *f, const char *text);

/* As svg_text, after printf. */
void svg_printf(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "12,345,678". Returns text. */
const char *svg_number(char text[SVG_NUMBER_MAX], uint64_t value);

/* A duration with a unit that fits: "731 ns", "12.3 µs", "1.250 ms", "2.5 s". Returns text. */
const char *svg_duration(char text[SVG_NUMBER_MAX], uint64_t ns);

#endif
