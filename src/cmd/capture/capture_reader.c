// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/capture/capture_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/control.h"

/* Sends one request on a new connection. Returns the connection, which stays open, or -1 after printing an error. */
static int ask(const char *path, struct control_call *call)
{
    int sock = control_open(path);
    int err = sock < 0 ? sock : control_call(sock, call);

    if (!err)
        return sock;
    if (sock >= 0)
        close(sock);
    control_explain(path, err, call->why);
    return -1;
}

static int add_device(struct capture_reader *reader, const char *path, const struct pm_capture_req *request,
                      const char *name)
{
    size_t size = PM_CAPTURE_RING + (size_t)request->ring_bytes;
    int fd = -1;
    struct control_call call = {.op = PM_OP_CAPTURE, .req = request, .req_len = sizeof(*request), .fd = &fd};
    struct capture_source *s = realloc(reader->source, (reader->n + 1) * sizeof(*s));
    void *p = MAP_FAILED;

    if (!s) {
        say("out of memory");
        return -1;
    }
    reader->source = s;
    s = &reader->source[reader->n];
    memset(s, 0, sizeof(*s));
    snprintf(s->name, sizeof(s->name), "%s", name);
    s->sock = ask(path, &call);
    if (s->sock < 0)
        return -1;
    if (fd >= 0)
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED) {
        say("%s: can't map the ring of the capture: %s", path, fd < 0 ? "the daemon sent none" : strerror(errno));
        close(s->sock);
        return -1;
    }
    s->page = p;
    s->ring = (uint8_t *)p + PM_CAPTURE_RING;
    s->size = request->ring_bytes;
    reader->n++;
    return 0;
}

int capture_reader_add(struct capture_reader *reader, const char *path, int host, const char *device,
                       const struct pm_capture_req *request)
{
    struct pm_list_rep list;
    struct control_call call = {.op = PM_OP_LIST, .rep = &list, .rep_len = sizeof(list)};
    struct pm_capture_req rq = *request;
    char name[sizeof(reader->source->name)];
    int sock = ask(path, &call), n = 0;

    if (sock < 0)
        return -1;
    close(sock);
    for (uint32_t i = 0; i < list.num && i < PM_DEVICES_MAX; i++) {
        const char *its = list.device[i].name;

        if (device && strncmp(its, device, PM_NAME_MAX) != 0)
            continue;
        if (host >= 0)
            snprintf(name, sizeof(name), "host%d:%.*s", host, PM_NAME_MAX, its);
        else
            snprintf(name, sizeof(name), "%.*s", PM_NAME_MAX, its);
        rq.device = i;
        if (add_device(reader, path, &rq, name) != 0)
            return -1;
        n++;
    }
    return n;
}

void capture_reader_poll(struct capture_reader *reader)
{
    struct timespec now;

    /* Read the clock before the heads. A packet is in its ring before it can cause another packet. So for each
     * packet up to this time, the packet that caused it is found too. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    reader->until = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    /* Acquire: pairs with the daemon's release, which comes after the daemon has written the records. */
    for (unsigned i = 0; i < reader->n; i++)
        reader->source[i].head = atomic_load_explicit(&reader->source[i].page->head, memory_order_acquire);
}

/* The oldest record of a ring, without padding; NULL: none. */
static const struct pm_capture_record *first(struct capture_source *s)
{
    while (s->tail != s->head) {
        const struct pm_capture_record *r = (const void *)(s->ring + (s->tail & (s->size - 1)));

        if (!(r->flags & PM_RECORD_SKIP))
            return r;
        s->tail += r->size;
    }
    return NULL;
}

const struct pm_capture_record *capture_reader_next(struct capture_reader *reader, unsigned *source)
{
    const struct pm_capture_record *oldest = NULL;

    for (unsigned i = 0; i < reader->n; i++) {
        const struct pm_capture_record *r = first(&reader->source[i]);

        if (r && r->time <= reader->until && (!oldest || r->time < oldest->time)) {
            oldest = r;
            *source = i;
        }
    }
    return oldest;
}

void capture_reader_done(struct capture_reader *reader, unsigned source)
{
    struct capture_source *s = &reader->source[source];
    const struct pm_capture_record *r = (const void *)(s->ring + (s->tail & (s->size - 1)));

    s->tail += r->size;
    /* Release: pairs with the daemon's acquire, after which it may overwrite the record. */
    atomic_store_explicit(&s->page->tail, s->tail, memory_order_release);
}

bool capture_reader_wait(struct capture_reader *reader, int ms)
{
    struct pollfd p[256];
    unsigned n = 0, at[256];
    bool alive = false;

    for (unsigned i = 0; i < reader->n && n < 256; i++)
        if (reader->source[i].sock >= 0) {
            at[n] = i;
            p[n++] = (struct pollfd){reader->source[i].sock, POLLIN, 0};
        }
    poll(p, n, ms);
    for (unsigned i = 0; i < n; i++)
        if (p[i].revents) { /* the daemon sends nothing here, so this is the end of the connection */
            close(reader->source[at[i]].sock);
            reader->source[at[i]].sock = -1;
        }
    for (unsigned i = 0; i < reader->n; i++)
        alive |= reader->source[i].sock >= 0;
    return alive;
}

void capture_reader_stop(struct capture_reader *reader)
{
    for (unsigned i = 0; i < reader->n; i++) {
        if (reader->source[i].sock >= 0)
            close(reader->source[i].sock);
        reader->source[i].sock = -1;
    }
}

void capture_reader_fini(struct capture_reader *reader)
{
    capture_reader_stop(reader);
    for (unsigned i = 0; i < reader->n; i++)
        munmap(reader->source[i].page, PM_CAPTURE_RING + reader->source[i].size);
    free(reader->source);
    memset(reader, 0, sizeof(*reader));
}
