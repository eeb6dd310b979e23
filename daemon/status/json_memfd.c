// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/json_memfd.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Collects text before it is written. jansson passes a document in pieces of a few bytes. With one system call for
 * each, the status of two thousand QPs took seconds. */
struct sheet {
    int fd;
    size_t used; /* bytes of text that are not written yet */
    char text[16384];
};

static int sheet_write(struct sheet *s)
{
    const char *text = s->text;

    while (s->used) {
        ssize_t n = write(s->fd, text, s->used);

        if (n < 0)
            return -1;
        text += n;
        s->used -= (size_t)n;
    }
    return 0;
}

static int dump(const char *text, size_t len, void *data)
{
    struct sheet *s = data;

    while (len) {
        size_t n = sizeof(s->text) - s->used;

        if (n > len)
            n = len;
        memcpy(s->text + s->used, text, n);
        s->used += n;
        text += n;
        len -= n;
        if (s->used == sizeof(s->text) && sheet_write(s) != 0)
            return -1;
    }
    return 0;
}

int json_memfd(const json_t *root)
{
    struct sheet s = {.fd = memfd_create("pumice-status", MFD_CLOEXEC)};

    if (s.fd < 0)
        return -errno;
    if (json_dump_callback(root, dump, &s, JSON_COMPACT) != 0 || sheet_write(&s) != 0 ||
        lseek(s.fd, 0, SEEK_SET) != 0) {
        close(s.fd);
        return -ENOMEM;
    }
    return s.fd;
}
