// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/capture/picture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "wire/gid.h"
#include "wire/pkt.h"

enum { KEY_FROM = 0x600, KEY_TO, KEY_QP, KEY_HOST };

static const struct argp_option arguments[] = {
    {"output", 'o', "FILE", 0, "Write to FILE instead (- for standard output)", 1},
    {0, 0, NULL, 0, "Choose a part of the capture:", 2},
    {"from", KEY_FROM, "PLACE", 0,
     "Begin at PLACE: a frame number, or a time since the first packet with its unit, such as 1.5s, 20ms or 300us", 2},
    {"to", KEY_TO, "PLACE", 0, "End at PLACE", 2},
    {"qp", KEY_QP, "NUMBER", 0, "Only connections of these queue pairs, separated by commas", 2},
    {"host", KEY_HOST, "ADDRESS", 0, "Only packets of this address; of several, those between them", 2},
    {0},
};

/* Reads a frame number, or a time with its unit. */
static bool parse_place(struct trace_place *out, const char *text)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ns", 1}};
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    if ((text[0] < '0' || text[0] > '9') || end == text || errno || !(value < 1e9))
        return false;
    *out = (struct trace_place){.given = true, .value = (uint64_t)value};
    if (!*end)
        return value >= 1 && strspn(text, "0123456789") == strlen(text);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) != 0)
            continue;
        out->is_time = true;
        out->value = (uint64_t)(value * units[i].ns + 0.5);
        return true;
    }
    return false;
}

static bool parse_qps(struct trace_options *o, char *text)
{
    char *end, *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        unsigned long qpn = strtoul(word, &end, 0);

        if (*end || word[0] < '0' || word[0] > '9' || qpn > QPN_MASK || o->num_qps == TRACE_LIST_MAX)
            return false;
        o->qps[o->num_qps++] = (uint32_t)qpn;
    }
    return o->num_qps > 0;
}

static bool parse_host(struct trace_options *o, const char *text)
{
    uint8_t v4[4];

    if (o->num_hosts == TRACE_LIST_MAX)
        return false;
    if (inet_pton(AF_INET, text, v4) == 1)
        gid_from_v4(o->hosts[o->num_hosts], v4);
    else if (inet_pton(AF_INET6, text, o->hosts[o->num_hosts]) != 1)
        return false;
    o->num_hosts++;
    return true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char place[] = "expected a frame number, or a time with its unit (s, ms, us)";
    struct picture_options *o = state->input;

    switch (key) {
    case 'o':
        o->output = arg;
        break;
    case KEY_FROM:
        if (!parse_place(&o->trace.from, arg))
            argp_error(state, "--from: invalid value '%s': %s", arg, place);
        break;
    case KEY_TO:
        if (!parse_place(&o->trace.to, arg))
            argp_error(state, "--to: invalid value '%s': %s", arg, place);
        break;
    case KEY_QP:
        if (!parse_qps(&o->trace, arg))
            argp_error(state, "--qp: expected queue pair numbers separated by commas, at most %d", TRACE_LIST_MAX);
        break;
    case KEY_HOST:
        if (!parse_host(&o->trace, arg))
            argp_error(state, "--host: invalid value '%s': expected an IPv4 or IPv6 address, at most %d times", arg,
                       TRACE_LIST_MAX);
        break;
    case ARGP_KEY_ARG:
        if (o->path)
            argp_error(state, "unexpected argument '%s': give one file", arg);
        o->path = arg;
        break;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no file given");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp picture_argp = {arguments, parse, "FILE", NULL, NULL, NULL, NULL};

FILE *picture_open(const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? fdopen(dup(STDIN_FILENO), "rb") : fopen(path, "rbe");
    struct stat st;

    if (f && fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(f);
        f = NULL;
        errno = EISDIR;
    }
    if (!f)
        say("%s: %s", path, strerror(errno));
    return f;
}

const char *picture_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strcmp(path, "-") == 0 ? "standard input" : slash ? slash + 1 : path;
}

void picture_explain(const char *path, const struct trace *t, int err)
{
    if (err == -EINVAL)
        say("%s: %s", path, t->error[0] ? t->error : "it is no capture");
    else if (err == -ENODATA && t->roce)
        say("%s: none of its %" PRIu32 " RoCEv2 packets is chosen; look at --from, --to, --qp and --host", path,
            t->roce);
    else if (err == -ENODATA)
        say("%s: no RoCEv2 packets: no UDP datagram to port 4791", path);
    else if (err)
        say("%s: %s", path, strerror(-err));
    else if (t->full)
        say("%s: packets after frame %" PRIu32 " were not read; choose them by --from", path,
            t->packets[t->num_packets - 1].frame);
}

char *picture_default_output(const char *path, const char *ending)
{
    const char *name = picture_name(path), *dot = strrchr(name, '.');
    char *out = NULL;

    if (strcmp(path, "-") == 0)
        return strdup("-");
    int stem = dot && dot != name ? (int)(dot - path) : (int)strlen(path);
    return asprintf(&out, "%.*s%s", stem, path, ending) < 0 ? NULL : out;
}

bool picture_name_fits(const char *output, const char *const endings[2])
{
    const char *slash = strrchr(output, '/'), *name = slash ? slash + 1 : output, *dot = strrchr(name, '.');
    bool one = !endings[1];

    /* `-o picture.png` makes no PNG. */
    if (!dot || dot == name || strcmp(dot, endings[0]) == 0 || (!one && strcmp(dot, endings[1]) == 0))
        return true;
    say("--output: the name '%s' ends with %s, but the picture is %s%s%s", output, dot, endings[0], one ? "" : " or ",
        one ? "" : endings[1]);
    return false;
}

int picture_write(const char *output, int (*write)(FILE *f, void *arg), void *arg)
{
    bool to_stdout = strcmp(output, "-") == 0;
    FILE *f = to_stdout ? fdopen(dup(STDOUT_FILENO), "wb") : fopen(output, "wbe");
    int err;

    if (!f) {
        err = -errno;
        say("%s: %s", output, strerror(-err));
        return err;
    }
    err = write(f, arg);
    errno = EIO;
    if (ferror(f) && !err)
        err = -errno;
    errno = EIO;
    if (fclose(f) != 0 && !err)
        err = -errno;
    if (err) {
        say("can't write %s: %s", to_stdout ? "to standard output" : output, strerror(-err));
        if (!to_stdout)
            unlink(output);
    }
    return err;
}
