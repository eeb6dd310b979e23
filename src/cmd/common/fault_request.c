// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/fault_request.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"

/* Appends c to the script, without comments and blanks at the ends of lines, which may be long. False: there is no room. */
static bool put(char *script, size_t size, size_t *len, char c, bool *comment)
{
    char before = *len ? script[*len - 1] : '\n';

    if (c == '#' && (before == '\n' || before == ' ' || before == '\t'))
        *comment = true;
    if (c == '\n') {
        *comment = false;
        while (*len && strchr(" \t\r", script[*len - 1]))
            --*len;
    }
    if (*comment)
        return true;
    if (*len + 1 >= size)
        return false;
    script[(*len)++] = c;
    return true;
}

/* Returns 0, or -1 after printing an error. Lines and columns stay as they are in the file. */
static int read_script(const char *file, char *script, size_t size)
{
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
    bool comment = false, fits = true, text = true;
    size_t len = 0;
    int c;

    if (!f) {
        say("%s: %s", file, strerror(errno));
        return -1;
    }
    while (fits && text && (c = getc(f)) != EOF) {
        text = c != 0;
        fits = put(script, size, &len, (char)c, &comment);
    }
    bool failed = ferror(f) != 0;
    int err = errno;
    if (f != stdin)
        fclose(f);
    script[len] = 0;
    if (failed)
        say("%s: %s", file, strerror(err));
    else if (!text)
        say("%s: not a text: it has a byte that is 0", file);
    else if (!fits)
        say("%s: the script is longer than %zu characters, without comments", file, size - 1);
    return failed || !text || !fits ? -1 : 0;
}

int fault_request_init(struct fault_request *r, const char *spec, const char *file, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->file = file;
    r->req.seed = seed;
    if (strlen(spec) >= sizeof(r->req.spec)) {
        say("the specification has %zu characters: at most %zu are possible", strlen(spec), sizeof(r->req.spec) - 1);
        return -1;
    }
    strcpy(r->req.spec, spec);
    return file ? read_script(file, r->req.script, sizeof(r->req.script)) : 0;
}

void fault_request_start(struct fault_request *r)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    r->req.start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int fault_request_send(struct fault_request *r, const char *path, unsigned host)
{
    struct control_call call = {.op = PM_OP_FAULT, .req = &r->req, .req_len = sizeof(r->req)};
    int sock = control_open(path);

    r->req.host = host;
    if (sock < 0) {
        control_explain(path, sock, "");
        return -1;
    }
    int err = control_call(sock, &call);
    close(sock);
    if (err && call.why[0] && r->file && strncmp(call.why, "line ", 5) == 0)
        say("%s: %s", r->file, call.why);
    else if (err && call.why[0])
        say("%s", call.why);
    else if (err)
        control_explain(path, err, "");
    return err ? -1 : 0;
}
