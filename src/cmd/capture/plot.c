// SPDX-License-Identifier: BSD-2-Clause
/* pumice plot: draws sequence numbers, throughput and round trips of a capture. */
#include "pcap/picture/plot.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/picture/plot_svg.h"
#include "src/cmd/capture/capture.h"
#include "src/cmd/capture/picture.h"
#include "src/cmd/common/cmd.h"

enum { PLOT_DRAWN = 0, PLOT_FAILED = 1 }; /* exit codes */

struct options {
    struct picture_options picture;
    uint32_t count;
};

static const struct argp_option arguments[] = {
    {"count", 'n', "N", 0, "Draw at most N queue pairs, those that sent the most requests (6)", 2},
    {0},
};

static const char doc[] = "Draws three charts as SVG for each queue pair of a RoCEv2 capture (pcap or pcapng; - for "
                          "standard input): sequence "
                          "numbers over time with retransmissions and losses, the throughput, and the round trips. "
                          "Without --output, the name is "
                          "that of FILE with .svg.\v"
                          "Examples:\n"
                          "  pumice plot trace.pcapng\n"
                          "  pumice plot --qp 0x430141 --to 20ms -o start.svg trace.pcapng\n";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    long n;

    switch (key) {
    case 'n':
        n = parse_number(arg, 1, PLOT_QPS_MAX);
        if (n < 0)
            argp_error(state, "--count: invalid value '%s': expected a number from 1 to %d", arg, PLOT_QPS_MAX);
        o->count = (uint32_t)n;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->picture;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int write_plot(FILE *f, void *arg)
{
    return plot_svg(f, arg);
}

/* Says why there is no plot, or why it does not have all queue pairs. */
static void explain(const struct options *o, const struct plot *p, int err)
{
    const char *path = o->picture.path;

    picture_explain(path, &p->trace, err);
    if (!err && p->all_qps > p->num_qps)
        say("%s: the plot has %zu of %zu queue pairs, those that sent the most requests; choose others by --qp or "
            "--host, "
            "or more by --count",
            path, p->num_qps, p->all_qps);
}

static int draw(const struct options *o, FILE *f, const char *output)
{
    struct plot p;
    int err = plot_read(&p, f, picture_name(o->picture.path), &o->picture.trace, o->count);

    explain(o, &p, err);
    if (!err || (err == -EINVAL && p.num_qps)) { /* of a broken file, the part that was read is drawn */
        if (picture_write(output, write_plot, &p) != 0)
            err = -EIO;
        else if (strcmp(output, "-") != 0)
            printf("%s: %zu queue pair%s\n", output, p.num_qps, p.num_qps == 1 ? "" : "s");
    }
    plot_free(&p);
    return err;
}

int cmd_plot(int argc, char **argv)
{
    static const struct argp_child children[] = {{&picture_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {arguments, parse, NULL, doc, children, NULL, NULL};
    struct options o = {.count = PLOT_QPS};
    char *name = NULL;

    argp_err_exit_status = PLOT_FAILED;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!o.picture.output)
        name = picture_default_output(o.picture.path, ".svg");
    const char *output = o.picture.output ? o.picture.output : name;
    FILE *f = output && picture_name_fits(output, (const char *[]){".svg", NULL}) ? picture_open(o.picture.path) : NULL;
    int err = f ? draw(&o, f, output) : -EINVAL;
    free(name);
    return err ? PLOT_FAILED : PLOT_DRAWN;
}
