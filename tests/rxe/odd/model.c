// SPDX-License-Identifier: BSD-2-Clause
/* The expected memory of both ends. Every byte that an end begins with depends on its place and on the end only, so each
 * end can compute what the requests of a case do to both blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rxe/odd/odd.h"

enum { WORD = 8 };

static uint8_t first_byte(uint32_t at, bool server)
{
    return (uint8_t)(server ? at * 11 + at / 251 : at * 7 + at / 241 + 99);
}

void model_fill(uint8_t *block, bool server)
{
    for (uint32_t i = 0; i < BLOCK_BYTES; i++)
        block[i] = first_byte(i, server);
}

uint64_t model_word(uint32_t at)
{
    uint8_t bytes[WORD];
    uint64_t word;
    for (uint32_t i = 0; i < WORD; i++)
        bytes[i] = first_byte(at + i, true);
    memcpy(&word, bytes, WORD);
    return word;
}

/* The two blocks while a case is computed, and the place of the next receive request. */
struct model {
    uint8_t *client, *server;
    uint8_t *client_ignore, *server_ignore;
    uint32_t received;
};

static void atomic(struct model *m, const struct request *r, uint32_t local, uint32_t remote)
{
    uint64_t old, new, compare = r->equal ? model_word(remote) : r->compare_add;
    memcpy(&old, m->server + remote, WORD);
    new = r->op == FETCH_ADD ? old + r->compare_add : old == compare ? r->swap : old;
    memcpy(m->client + local, &old, WORD);
    memcpy(m->server + remote, &new, WORD);
}

/* UD receive buffers begin with 40 bytes of headers, of which the first 20 are undefined with IPv4. */
static void receive(struct model *m, const struct odd_case *c, const struct request *r, uint32_t local)
{
    uint32_t at = RECEIVE + m->received * c->receive_bytes;
    if (c->type == IBV_QPT_UD) {
        memset(m->server_ignore + at, 1, GRH_BYTES);
        at += GRH_BYTES;
    }
    memcpy(m->server + at, m->client + local, r->length);
    m->received++;
}

/* A request that fails may have brought a part of its data to a receive buffer, or a READ to the local buffer. */
static void failed(struct model *m, const struct odd_case *c, const struct request *r, uint32_t local)
{
    if (r->op == READ || r->op == FETCH_ADD || r->op == COMPARE_SWAP)
        memset(m->client_ignore + local, 1, r->length);
    else if (r->op == SEND || r->op == SEND_IMM || r->op == SEND_INV)
        memset(m->server_ignore + RECEIVE, 1, c->receives * c->receive_bytes);
}

static void execute(struct model *m, const struct odd_case *c, const struct request *r, uint32_t index)
{
    uint32_t local = SOURCE + r->local + index * r->length;
    uint32_t remote = (uint32_t)(TARGET + r->remote) + index * r->length;
    if (r->fails) {
        failed(m, c, r, local);
        return;
    }
    switch (r->op) {
    case SEND:
    case SEND_IMM:
    case SEND_INV:
        receive(m, c, r, local);
        break;
    case WRITE_IMM:
        m->received++;
        memcpy(m->server + remote, m->client + local, r->length);
        break;
    case WRITE:
        memcpy(m->server + remote, m->client + local, r->length);
        break;
    case READ:
        memcpy(m->client + local, m->server + remote, r->length);
        break;
    default:
        atomic(m, r, local, remote);
    }
}

void model_run(struct end *e, const struct odd_case *c)
{
    uint8_t *other = malloc(BLOCK_BYTES), *other_ignore = calloc(1, BLOCK_BYTES);
    if (!other || !other_ignore)
        die("memory");
    model_fill(other, !e->server);
    model_fill(e->expected, e->server);
    memset(e->ignore, 0, BLOCK_BYTES);
    struct model m = {.client = e->server ? other : e->expected,
                      .server = e->server ? e->expected : other,
                      .client_ignore = e->server ? other_ignore : e->ignore,
                      .server_ignore = e->server ? e->ignore : other_ignore};
    for (const struct request *r = c->request; r < c->request + MAX_REQUESTS && r->op != NONE; r++)
        for (uint32_t i = 0; i < request_count(r); i++)
            execute(&m, c, r, i);
    free(other);
    free(other_ignore);
}

void model_compare(const struct end *e, char *text, size_t size)
{
    static const struct {
        uint32_t end;
        const char *name;
    } parts[] = {{TARGET, "before the target"},
                 {TARGET + TARGET_BYTES, "in the target"},
                 {SOURCE, "behind the target"},
                 {SOURCE + SOURCE_BYTES, "in the local buffers"},
                 {RECEIVE, "behind the local buffers"},
                 {RECEIVE + RECEIVE_BYTES, "in the receive buffers"},
                 {BLOCK_BYTES, "behind the receive buffers"}};
    uint32_t i = 0;
    while (i < BLOCK_BYTES && (e->ignore[i] || e->block[i] == e->expected[i]))
        i++;
    if (i == BLOCK_BYTES) {
        snprintf(text, size, "right");
        return;
    }
    size_t part = 0;
    while (i >= parts[part].end)
        part++;
    snprintf(text, size, "wrong %s", parts[part].name);
}
