// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verbs/endurance/endurance.h"

const char *const op_name[OP_MAX] = {"send", "send_imm", "write", "write_imm", "read", "faa", "cas", "bind"};

uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The last operation of each quarter of the depth makes the server look, or the credits would run dry. */
bool is_sync(uint64_t k)
{
    uint32_t quarter = par.depth / 4;

    return k % quarter == quarter - 1 || k + 1 == par.count;
}

bool is_received(enum op op)
{
    return op == OP_SEND || op == OP_SEND_IMM || op == OP_WRITE_IMM;
}

struct operation operation_get(uint64_t k)
{
    uint64_t r = mix(par.seed * 0x9e3779b97f4a7c15u + k + 1), r2 = mix(r + 1), r3 = mix(r + 2);
    struct operation o = {.solicited = r & 1, .fence = (r >> 1) % 8 == 0, .inlined = r >> 4 & 1};
    uint32_t span = par.max_size - par.min_size + 1, mask = par.ops;

    if (is_sync(k)) {
        mask &= 1u << OP_SEND | 1u << OP_SEND_IMM | 1u << OP_WRITE_IMM;
        if (mask == 0)
            mask = 1u << OP_SEND;
    }
    for (uint32_t pick = (uint32_t)(r >> 8) % (uint32_t)__builtin_popcount(mask); pick > 0; pick--)
        mask &= mask - 1;
    o.op = (enum op)__builtin_ctz(mask);
    /* Half of the sizes are uniform, half small: both the many-packet and the one-packet paths get their share. */
    o.size = par.min_size + (uint32_t)(r2 % ((r2 >> 40 & 1) ? span : span < 256 ? span : 256));
    if (o.op == OP_FAA || o.op == OP_CAS)
        o.size = 8;
    if (o.op == OP_BIND)
        o.size = 0;
    o.word = (uint32_t)(r3 % ATOMIC_WORDS);
    o.source = r3 % (st.slot_size - o.size + 1);
    o.cut = o.size == 0 ? 0 : (uint32_t)(r3 >> 20) % (o.size + 1);
    return o;
}

void pattern(uint8_t *p, uint32_t size, uint64_t stream, uint64_t offset)
{
    uint64_t word, base = mix(par.seed ^ mix(stream));
    uint32_t i;

    for (i = 0; i + 8 <= size; i += 8) {
        word = (base + offset + i) * 0x9e3779b97f4a7c15u;
        word ^= word >> 29;
        memcpy(p + i, &word, 8);
    }
    if (i < size) {
        word = (base + offset + i) * 0x9e3779b97f4a7c15u;
        word ^= word >> 29;
        memcpy(p + i, &word, size - i);
    }
}

void check(uint64_t k, const struct operation *o, const uint8_t *data, uint64_t stream, uint64_t offset)
{
    uint32_t at = 0;

    pattern(st.scratch, o->size, stream, offset);
    if (memcmp(st.scratch, data, o->size) == 0)
        return;
    while (st.scratch[at] == data[at])
        at++;
    printf("wrong data: operation %llu %s size %u, first at byte %u: %02x instead of %02x\n", (unsigned long long)k,
           op_name[o->op], o->size, at, data[at], st.scratch[at]);
    exit(EXIT_DATA);
}
