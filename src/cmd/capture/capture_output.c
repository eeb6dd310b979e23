// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/capture/capture_output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pcap/note.h"
#include "pumice/version.h"
#include "src/cmd/common/cmd.h"
#include "wire/mad.h"
#include "wire/pumice/sack.h"

#define ROCE_UDP_PORT 4791
#define PACKET_MAX 65536u
#define BLOCK_OVERHEAD 100 /* bytes of a packet block besides its data, estimated */

static uint64_t clock_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int failed(const struct capture_output *o, int err)
{
    if (err && err != -EPIPE)
        say("can't write %s: %s", strcmp(o->path, "-") == 0 ? "to standard output" : o->path, strerror(-err));
    return err;
}

/* The name of the current file. In a set of files, out.pcapng becomes out.0.pcapng, out.1.pcapng … */
static void file_name(const struct capture_output *o, char *out)
{
    const char *slash = strrchr(o->path, '/'), *base = slash ? slash + 1 : o->path, *dot = strrchr(base, '.');
    int stem = (int)(dot && dot != base ? dot - o->path : (ptrdiff_t)strlen(o->path));

    if (o->size)
        snprintf(out, PATH_MAX, "%.*s.%u%s", stem, o->path, o->number, o->path + stem);
    else
        snprintf(out, PATH_MAX, "%s", o->path);
}

static int begin_file(struct capture_output *o)
{
    static const char application[] = "Pumice " PUMICE_VERSION;
    char name[PATH_MAX];
    int err;

    if (strcmp(o->path, "-") == 0) {
        int fd = dup(STDOUT_FILENO);
        FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;

        err = f ? capfile_start(&o->file, f, application) : -errno;
    } else {
        file_name(o, name);
        err = capfile_open(&o->file, name, application);
    }
    o->open = err == 0;
    o->written = 0;
    for (unsigned i = 0; i < o->reader->n && !err; i++) {
        int n = capfile_add_interface(&o->file, o->reader->source[i].name);

        err = n < 0 ? n : 0;
    }
    for (unsigned i = 0; i < o->reader->n && o->lost && !err; i++) {
        char lost[PATH_MAX];

        snprintf(lost, sizeof(lost), "%s lost", o->reader->source[i].name);
        int n = capfile_add_interface(&o->file, lost);
        err = n < 0 ? n : 0;
    }
    return err ? err : capture_output_flush(o);
}

int capture_output_open(struct capture_output *o, const struct capture_reader *reader)
{
    o->reader = reader;
    o->number = 0;
    o->packets = 0;
    o->offset = clock_of(CLOCK_REALTIME) - clock_of(CLOCK_MONOTONIC);
    o->packet = malloc(PACKET_MAX);
    int err = o->packet ? begin_file(o) : -ENOMEM;
    if (!err)
        return 0;
    failed(o, err);
    if (o->open)
        capfile_close(&o->file);
    free(o->packet);
    return err;
}

static int end_file(struct capture_output *o)
{
    uint64_t now = clock_of(CLOCK_MONOTONIC) + o->offset;
    int err = 0;

    for (unsigned i = 0; i < o->reader->n && !err; i++) {
        struct pm_capture_page *p = o->reader->source[i].page;

        uint64_t faults = atomic_load(&p->lost);
        char text[NOTE_MAX] = "";

        if (faults)
            note_format_lost(faults, text);
        err = capfile_add_statistics(&o->file, i, now, atomic_load(&p->packets), atomic_load(&p->dropped), text);
    }
    int rc = capfile_close(&o->file);
    o->open = false;
    return err ? err : rc;
}

_Static_assert(sizeof(((struct pm_capture_record *)0)->comm) == NOTE_COMM, "names of programs have the same size");

static uint8_t faults_of(uint32_t flags)
{
    return (uint8_t)((flags & PM_RECORD_LOST ? NOTE_LOST : 0) | (flags & PM_RECORD_DAMAGED ? NOTE_DAMAGED : 0) |
                     (flags & PM_RECORD_TWICE ? NOTE_TWICE : 0) | (flags & PM_RECORD_LATE ? NOTE_LATE : 0) |
                     (flags & PM_RECORD_MARKED ? NOTE_MARKED : 0));
}

/* packet: r->len bytes. */
static void comment(const struct pm_capture_record *r, const uint8_t *packet, char *out)
{
    struct sack sack;
    struct note n = {.qpn = r->qpn,
                     .pid = r->pid,
                     .has_wr = (r->flags & PM_RECORD_WR) != 0,
                     .wr_id = r->wr_id,
                     .retransmit = (r->flags & PM_RECORD_RETRANSMIT) != 0,
                     .inside = (r->flags & PM_RECORD_INSIDE) != 0,
                     .before = (r->flags & PM_RECORD_BEFORE) != 0,
                     .faults = faults_of(r->flags),
                     .mad = mad_of_packet(packet, r->len),
                     .sack = sack_of_packet(packet, r->len, &sack) ? &sack : NULL};

    memcpy(n.comm, r->comm, sizeof(n.comm));
    note_format(&n, out);
}

int capture_output_add(struct capture_output *o, unsigned source, const struct pm_capture_record *r)
{
    uint32_t len = r->len < PACKET_MAX ? r->len : PACKET_MAX;
    struct frame_flow flow = {.src_port = r->src_port,
                              .dst_port = ROCE_UDP_PORT,
                              .ip_id = r->ip_id,
                              .tos = r->tos,
                              .cut = (uint16_t)(r->orig_len - len)};
    enum pcapng_direction direction = r->flags & PM_RECORD_OUT ? PCAPNG_DIR_OUT : PCAPNG_DIR_IN;
    char text[NOTE_MAX];
    int err = 0;

    if (o->size && o->written >= o->size) {
        err = end_file(o);
        o->number = o->count ? (o->number + 1) % o->count : o->number + 1;
        if (!err)
            err = begin_file(o);
        if (err)
            return failed(o, err);
    }
    memcpy(flow.src, r->src, sizeof(flow.src));
    memcpy(flow.dst, r->dst, sizeof(flow.dst));
    memcpy(o->packet, r + 1, len);
    if (r->flags & PM_RECORD_NO_ICRC && !flow.cut)
        frame_icrc(&flow, o->packet, len);
    comment(r, (const uint8_t *)(r + 1), text);
    if (r->flags & PM_RECORD_LOST && o->lost)
        source += o->reader->n; /* the interface of the lost packets of this source */
    err = capfile_add_udp(&o->file, source, r->time + o->offset, &flow, o->packet, len, direction, text);
    o->packets++;
    o->written += len + strlen(text) + BLOCK_OVERHEAD;
    return failed(o, err);
}

int capture_output_flush(struct capture_output *o)
{
    errno = EIO;
    return failed(o, fflush(o->file.stream) == 0 ? 0 : -errno);
}

bool capture_output_abandoned(const struct capture_output *o)
{
    struct pollfd p = {.fd = fileno(o->file.stream)};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

int capture_output_close(struct capture_output *o)
{
    int err = o->open ? end_file(o) : 0;

    free(o->packet);
    o->packet = NULL;
    return failed(o, err);
}
