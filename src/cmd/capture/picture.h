// SPDX-License-Identifier: BSD-2-Clause
/* The common part of the commands that draw captures: options that choose packets, and files. */
#ifndef PUMICE_SRC_CMD_CAPTURE_PICTURE_H
#define PUMICE_SRC_CMD_CAPTURE_PICTURE_H

#include <argp.h>
#include <stdio.h>

#include "pcap/trace/trace.h"

struct picture_options {
    struct trace_options trace;
    const char *path; /* of the capture; "-": standard input */
    const char *output; /* NULL: the command's default; "-": standard output */
};

/* The options --output, --from, --to, --qp and --host, and the argument FILE. It is a child of the command's argp; the
 * input is a struct picture_options. */
extern const struct argp picture_argp;

/* Opens the capture. On an error prints a message and returns NULL. */
FILE *picture_open(const char *path);

/* The name of a file without its folders; for "-" "standard input". */
const char *picture_name(const char *path);

/* Prints why a picture can't be made (err: -errno), or, with err 0, which packets were not read. */
void picture_explain(const char *path, const struct trace *t, int err);

/* Makes the name of the output, if the user gives none: that of the capture, with another ending. The caller frees it.
 * NULL without memory. */
char *picture_default_output(const char *path, const char *ending);

/* May the picture have this name? Its ending must be one of `endings` (the second one may be NULL). A name without an ending
 * fits, too. False: a message was printed. */
bool picture_name_fits(const char *output, const char *const endings[2]);

/* Calls `write` with a file of this name ("-": standard output). If that fails, prints a message, removes the file, and
 * returns a negative number. write returns 0 or -errno. */
int picture_write(const char *output, int (*write)(FILE *f, void *arg), void *arg);

#endif
