// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cmd/common/control.h"

/* The document in a memfd; NULL, with why of PM_WHY_MAX bytes. */
static json_t *load(int fd, char *why)
{
    struct stat st;
    json_error_t error;
    json_t *document;
    char *text;
    size_t len;

    if (fstat(fd, &st) != 0 || st.st_size <= 0) {
        snprintf(why, PM_WHY_MAX, "the daemon sent an empty status");
        return NULL;
    }
    text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED) {
        snprintf(why, PM_WHY_MAX, "can't read the status: %s", strerror(errno));
        return NULL;
    }
    len = strnlen(text, (size_t)st.st_size); /* whole pages may have come */
    document = json_loadb(text, len, 0, &error);
    munmap(text, (size_t)st.st_size);
    if (!document)
        snprintf(why, PM_WHY_MAX, "the status is no JSON: %.160s in line %d", error.text, error.line);
    return document;
}

/* NULL: with *err and why, of PM_WHY_MAX bytes; *err says all if why is "". */
static json_t *fetch(const char *path, uint32_t op, const void *req, uint32_t len, int *err, char *why)
{
    int fd = -1, sock = control_open(path);
    struct control_call call = {.op = op, .req = req, .req_len = len, .fd = &fd};
    json_t *document = NULL;

    *err = sock < 0 ? sock : control_call(sock, &call);
    memcpy(why, call.why, sizeof(call.why));
    if (sock >= 0)
        close(sock);
    if (!*err)
        document = load(fd, why);
    if (fd >= 0)
        close(fd);
    return document;
}

json_t *fetch_document(const char *path, uint32_t op, const void *req, uint32_t len)
{
    char why[PM_WHY_MAX];
    int err;
    json_t *document = fetch(path, op, req, len, &err, why);

    if (!document)
        control_explain(path, err, why);
    return document;
}

json_t *fetch_quietly(const char *path, uint32_t op, const void *req, uint32_t len)
{
    char why[PM_WHY_MAX];
    int err;

    return fetch(path, op, req, len, &err, why);
}
