// SPDX-License-Identifier: BSD-2-Clause
/* pumice ladder: draws a capture as a sequence diagram. */
#include "pcap/picture/ladder.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/picture/ladder_html.h"
#include "pcap/picture/ladder_svg.h"
#include "src/cmd/capture/capture.h"
#include "src/cmd/capture/picture.h"
#include "src/cmd/common/cmd.h"

enum { LADDER_DRAWN = 0, LADDER_FAILED = 1 }; /* exit codes */

struct options {
    struct picture_options picture;
    uint32_t count;
};

static const struct argp_option arguments[] = {
    {"count", 'n', "N", 0, "Draw at most N packets (1000)", 2},
    {0},
};

static const char doc[] = "Draws a RoCEv2 capture (pcap or pcapng; - for standard input) as a sequence diagram: time "
                          "runs downwards, each packet "
                          "is an arrow. The output is SVG, or HTML if its name ends with .html. In HTML, each larger "
                          "exchange is folded to a band "
                          "that opens on a click. Without --output, the name is that of FILE with .html.\v"
                          "Examples:\n"
                          "  pumice ladder trace.pcapng\n"
                          "  pumice ladder --qp 0x430141 --from 10ms -o trace.svg trace.pcapng\n";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    long n;

    switch (key) {
    case 'n':
        n = parse_number(arg, 1, LADDER_PACKETS_MAX);
        if (n < 0)
            argp_error(state, "--count: invalid value '%s': expected a number from 1 to %d", arg, LADDER_PACKETS_MAX);
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

static bool is_html(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".html") == 0;
}

struct output {
    const struct ladder *ladder;
    bool html;
};

static int write_ladder(FILE *f, void *arg)
{
    const struct output *o = arg;

    if (o->html)
        return ladder_html(f, o->ladder);
    ladder_svg(f, o->ladder);
    return 0;
}

/* Says why there is no picture, or why it does not have all packets. */
static void explain(const struct options *o, const struct ladder *l, int err)
{
    const char *path = o->picture.path;

    if (err == -E2BIG)
        say("%s: a picture has room for %d addresses, and the packets have more; choose some by --host or --qp", path,
            LADDER_COLUMNS_MAX);
    else
        picture_explain(path, &l->trace, err);
    if (!err && l->wanted > l->num_packets)
        say("%s: the picture has the first %" PRIu32 " of %" PRIu32
            " packets; choose others by --from, --to, --qp or --host, or more by --count",
            path, l->num_packets, l->wanted);
}

static int draw(const struct options *o, FILE *f, const char *output)
{
    struct ladder l;
    int err = ladder_read(&l, f, picture_name(o->picture.path), &o->picture.trace, o->count);
    bool broken = err == -EINVAL && l.num_packets && !l.too_many; /* the part that was read is drawn */

    explain(o, &l, err);
    if (!err || broken) {
        struct output out = {&l, is_html(output)};

        if (picture_write(output, write_ladder, &out) != 0)
            err = -EIO;
        else if (strcmp(output, "-") != 0)
            printf("%s: %" PRIu32 " packets, %" PRIu32 " lost or damaged, %" PRIu32 " retransmissions\n", output,
                   l.num_packets, l.lost, l.again);
    }
    ladder_free(&l);
    return err;
}

int cmd_ladder(int argc, char **argv)
{
    static const struct argp_child children[] = {{&picture_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {arguments, parse, NULL, doc, children, NULL, NULL};
    struct options o = {.count = LADDER_PACKETS};
    char *name = NULL;

    argp_err_exit_status = LADDER_FAILED;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!o.picture.output)
        name = picture_default_output(o.picture.path, ".html");
    const char *output = o.picture.output ? o.picture.output : name;
    FILE *f =
        output && picture_name_fits(output, (const char *[]){".svg", ".html"}) ? picture_open(o.picture.path) : NULL;
    int err = f ? draw(&o, f, output) : -EINVAL;
    free(name);
    return err ? LADDER_FAILED : LADDER_DRAWN;
}
