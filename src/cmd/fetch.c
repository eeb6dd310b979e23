// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/fetch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/control.h"

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

json_t *fetch_document(const char *path, uint32_t op, const void *req, uint32_t len)
{
    int fd = -1;
    struct control_call call = {.op = op, .req = req, .req_len = len, .fd = &fd};
    int sock = control_open(path);
    int err = sock < 0 ? sock : control_call(sock, &call);
    json_t *document = NULL;

    if (sock >= 0)
        close(sock);
    if (err)
        control_explain(path, err, call.why);
    else
        document = load(fd, path);
    if (fd >= 0)
        close(fd);
    return document;
}
