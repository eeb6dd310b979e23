// SPDX-License-Identifier: BSD-2-Clause
/* pumice status: what daemons have to tell about themselves. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/cmd.h"
#include "src/cmd/control.h"
#include "src/cmd/show.h"

struct status_options {
    bool json, all;
    int host;
    const char *socket;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "JSON in place of text", 0},
    {"all", 'a', NULL, 0, "Everything: zero counters, too, and those of each QP", 0},
    {"host", 'H', "N", 0, "Only this host of the lab", 0},
    {"socket", 'S', "PATH", 0, "Control socket of the daemon; else that of the environment", 0},
    {0},
};

static const char doc[] = "Shows devices, programs that use them, objects, QP states and counters of a running daemon; "
                          "in a lab, of all hosts.\v"
                          "Examples:\n"
                          "  pumice status\n"
                          "  pumice run --hosts 2 -- sh -c './my_test.sh; pumice status --json > counters.json'\n";

/* What the daemon's arrays have more of is for --all and --json. */
static const struct show_columns columns[] = {
    {"qps", "qpn session comm type state requester dest_qpn dgid sq_posted rq_posted inflight_bytes srtt_us "
            "deadline_us broken"},
    {NULL, NULL},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct status_options *o = state->input;

    switch (key) {
    case 'j':
        o->json = true;
        break;
    case 'a':
        o->all = true;
        break;
    case 'H':
        o->host = (int)parse_number(arg, 0, HOSTS_MAX - 1);
        if (o->host < 0)
            argp_error(state, "--host=%s: must be the number of a host", arg);
        break;
    case 'S':
        o->socket = arg;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is too much: pumice status takes no arguments", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* The document in a memfd. */
static json_t *load(int fd, const char *path)
{
    struct stat st;
    json_error_t error;
    json_t *document;
    char *text;
    size_t len;

    if (fstat(fd, &st) != 0 || st.st_size <= 0) {
        say("%s: the daemon sent an empty status", path);
        return NULL;
    }
    text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED) {
        say("%s: can't read the status: %s", path, strerror(errno));
        return NULL;
    }
    len = strnlen(text, (size_t)st.st_size); /* whole pages may have come */
    document = json_loadb(text, len, 0, &error);
    munmap(text, (size_t)st.st_size);
    if (!document)
        say("%s: the status is no JSON: %s in line %d", path, error.text, error.line);
    return document;
}

static json_t *ask(const char *path)
{
    int fd = -1;
    struct control_call call = {.op = PM_OP_STATUS, .fd = &fd};
    int sock = control_open(path);
    int err = sock < 0 ? sock : control_call(sock, &call);
    json_t *document = NULL;

    if (sock >= 0)
        close(sock);
    if (err && sock >= 0 && call.why[0])
        say("%s: %s", path, call.why);
    else if (err)
        control_explain(path, err);
    else
        document = load(fd, path);
    if (fd >= 0)
        close(fd);
    return document;
}

static void show_host(const struct targets *t, unsigned i, const char *path, const json_t *status, bool all)
{
    if (i)
        putchar('\n');
    if (t->first >= 0)
        printf("=== host %u (%s)\n", (unsigned)t->first + i, path);
    else
        printf("=== %s\n", path);
    show_json(stdout, status, columns, all);
}

int cmd_status(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct status_options o = {.host = -1};
    json_t *hosts = json_array(), *root;
    char path[SOCKET_PATH_MAX];
    struct targets t;
    int code = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (targets_find(&t, o.socket, o.host) != 0)
        return 1;
    for (unsigned i = 0; i < t.n; i++) {
        json_t *status, *host;

        targets_socket(&t, i, path);
        status = ask(path);
        if (!status) {
            code = 1;
            continue;
        }
        if (!o.json)
            show_host(&t, i, path, status, o.all);
        host = json_pack("{s:s, s:o}", "socket", path, "status", status);
        if (t.first >= 0)
            json_object_set_new(host, "host", json_integer(t.first + (json_int_t)i));
        json_array_append_new(hosts, host);
    }
    root = json_pack("{s:o}", "hosts", hosts);
    if (o.json) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(root);
    return code;
}
