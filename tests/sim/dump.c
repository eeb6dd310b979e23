// SPDX-License-Identifier: BSD-2-Clause
/* The output after a failure: the last lines of the log, and a capture for Wireshark. */
#include "tests/sim/sim.h"

#include "pcap/capfile.h"
#include "wire/syndrome.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TAIL_LINES 60
#define LINE 240

struct capture {
    struct capfile file;
    bool only_peers; /* records only packets between peers, for checks of such packets */
    bool verbose; /* prints all lines at once, instead of the last ones at the end */
    char line[TAIL_LINES][LINE];
    unsigned n;
};

struct capture *capture_start(const char *path, bool verbose)
{
    struct capture *c = calloc(1, sizeof *c);
    if (!c) {
        abort();
    }
    c->verbose = verbose;
    if (capfile_open(&c->file, path, "Pumice simulator") != 0) {
        free(c);
        return NULL;
    }
    for (int i = 0; i < MAX_HOSTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "host%d", i);
        capfile_add_interface(&c->file, name);
    }
    return c;
}

void capture_only_peers(struct capture *c)
{
    c->only_peers = true;
}

static void add_line(struct capture *c, const char *text)
{
    if (c->only_peers) {
        return;
    }
    if (c->verbose) {
        puts(text);
        return;
    }
    snprintf(c->line[c->n++ % TAIL_LINES], LINE, "%s", text);
}

void capture_note(struct sim *s, const char *fmt, ...)
{
    char text[LINE];
    if (!s->capture) {
        return;
    }
    int n = snprintf(text, sizeof text, "%12.3f  ", (double)s->now / 1000);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    add_line(s->capture, text);
}

static void describe(const struct wirepkt *p, char *out, size_t cap)
{
    struct pkt k;
    if (pkt_decode(p->data, p->len, &k) != PKT_OK) {
        snprintf(out, cap, "%u bytes that can't be decoded", p->len);
        return;
    }
    const struct op_info *i = &op_table[k.opcode];
    int n = snprintf(out, cap, "%s QP %u PSN %u, %u bytes%s", i->name, k.dest_qpn, k.psn, k.payload_len,
                     k.ackreq ? ", AckReq" : "");
    if (i->headers & OP_HAS_AETH && (size_t)n < cap) {
        snprintf(out + n, cap - (size_t)n, ", syndrome %#x, MSN %u", k.aeth.syndrome, k.aeth.msn);
    } else if (i->headers & OP_HAS_RETH && (size_t)n < cap) {
        snprintf(out + n, cap - (size_t)n, ", RETH %#llx + %u", (unsigned long long)k.reth.va, k.reth.length);
    }
}

void capture_packet(struct sim *s, const struct wirepkt *p, const char *what)
{
    char text[LINE], comment[LINE + 64];
    if (!s->capture || (s->capture->only_peers && p->stranger)) {
        return;
    }
    bool sent = what[0] == 's';
    describe(p, text, sizeof text);
    capture_note(s, "host %d %c host %d  #%-4u %-10s %s", p->src, sent ? '>' : '-', p->dst, p->number, what, text);
    struct frame_flow f = {.src_port = (uint16_t)(0xc000 + p->src), .dst_port = ROCE_PORT, .ip_id = p->ip_id};
    memcpy(f.src, s->host[p->src].cfg.gids[p->v6], 16);
    memcpy(f.dst, s->host[p->dst].cfg.gids[p->v6], 16);
    snprintf(comment, sizeof comment, "packet %u %s", p->number, what);
    uint8_t data[PKT_HEADERS_MAX + PKT_MTU_MAX + ICRC_LEN];
    memcpy(data, p->data, p->len);
    /* No one computes the ICRC within a host, but the capture should show a right one. */
    if (p->loop) {
        icrc_store(data + p->len - ICRC_LEN,
                   icrc_compute(&s->host[p->src].icrc[p->dst][p->v6], p->ip_id, data, p->len - ICRC_LEN));
    }
    capfile_add_udp(&s->capture->file, (uint32_t)(sent ? p->src : p->dst), s->now, &f, data, p->len,
                    sent ? PCAPNG_DIR_OUT : PCAPNG_DIR_IN, comment);
}

void capture_end(struct capture *c)
{
    unsigned from = c->n > TAIL_LINES ? c->n - TAIL_LINES : 0;
    for (unsigned i = from; i < c->n; i++) {
        puts(c->line[i % TAIL_LINES]);
    }
    capfile_close(&c->file);
    free(c);
}
