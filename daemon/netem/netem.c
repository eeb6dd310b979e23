// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/netem/netem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_MAX (1u << 20) /* bytes of a plan */

/* Returns the text of the file, which the caller frees. NULL, with why and errno. */
static char *read_text(const char *file, char why[ERROR_TEXT_MAX])
{
    FILE *f = fopen(file, "re");
    char *text = f ? malloc(TEXT_MAX + 1) : NULL;
    size_t len = text ? fread(text, 1, TEXT_MAX, f) : 0;
    int err = !f || !text || ferror(f) ? errno : len == TEXT_MAX ? EFBIG : memchr(text, 0, len) ? EINVAL : 0;

    if (f)
        fclose(f);
    if (!err) {
        text[len] = 0;
        return text;
    }
    snprintf(why, ERROR_TEXT_MAX, "net: can't read %s: %s", file, err == EINVAL ? "it is not a text" : strerror(err));
    free(text);
    errno = err;
    return NULL;
}

static int map_queues(const char *file, struct netem *n, char why[ERROR_TEXT_MAX])
{
    const size_t size = sizeof(n->queues[0]) * NETEM_QUEUES;
    char path[PATH_MAX];
    void *p = MAP_FAILED;

    if ((size_t)snprintf(path, sizeof(path), "%s.state", file) >= sizeof(path)) {
        snprintf(why, ERROR_TEXT_MAX, "net: the name %s is too long", file);
        return -ENAMETOOLONG;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int err = p == MAP_FAILED ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (err) {
        snprintf(why, ERROR_TEXT_MAX, "net: can't make %.400s: %s", path, strerror(err));
        return -err;
    }
    n->queues = p;
    return 0;
}

int netem_open(const char *file, struct netem **out, char why[ERROR_TEXT_MAX])
{
    char wrong[NETEM_WHY_MAX];
    char *text = read_text(file, why);
    struct netem *n = text ? calloc(1, sizeof(*n)) : NULL;
    int rc = text && n ? 0 : -errno;

    if (text && !n)
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
    if (!rc && netem_plan_parse(text, &n->plan, wrong) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "net: %s", wrong);
        rc = -EINVAL;
    }
    if (!rc)
        rc = map_queues(file, n, why);
    free(text);
    if (rc) {
        free(n);
        return rc;
    }
    *out = n;
    return 0;
}

void netem_keep_all(struct netem *n)
{
    for (unsigned i = 0; i < n->plan.num_links; i++) {
        struct netem_link *l = &n->plan.link[i];

        l->queue_bytes = l->mark_bytes = l->mark_all_bytes = 0;
    }
}

void netem_close(struct netem *n)
{
    if (!n)
        return;
    munmap(n->queues, sizeof(n->queues[0]) * NETEM_QUEUES);
    free(n);
}

void netem_begin(const struct netem *n, const uint8_t src[16], const uint8_t dst[16], struct netem_trip *trip)
{
    struct netem_hop hops[NETEM_HOPS];
    uint32_t from = netem_plan_host(&n->plan, src), to = netem_plan_host(&n->plan, dst);

    *trip = (struct netem_trip){.from = (uint16_t)from, .to = (uint16_t)to};
    if (from != NETEM_NOWHERE && to != NETEM_NOWHERE)
        trip->hops = (uint8_t)netem_plan_route(&n->plan, from, to, hops);
}

struct netem_passage netem_pass(const struct netem *n, struct netem_trip *trip, uint32_t len, bool v6, uint64_t random,
                                uint64_t now)
{
    struct netem_hop hops[NETEM_HOPS];

    netem_plan_route(&n->plan, trip->from, trip->to, hops);
    const struct netem_hop *hop = &hops[trip->next++];
    return netem_link_pass(hop->link, &n->queues[hop->queue], len + (v6 ? NETEM_OVERHEAD_V6 : NETEM_OVERHEAD_V4),
                           random, now);
}
