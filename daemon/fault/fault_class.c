// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault_class.h"

#include <string.h>

#include "daemon/fault/fault_pkt.h"
#include "wire/cm_msg.h"
#include "wire/opcode.h"
#include "wire/syndrome.h"
#include "wire/tmh.h"

/* --- names ------------------------------------------------------------------------------------- */

static bool parse_message(struct str s, struct fault_rule *r)
{
    for (uint16_t a = CM_REQ; a <= CM_APR; a++) {
        if (str_is_any_case(s, cm_attribute_name(a))) {
            r->only = FAULT_CM;
            r->message = a;
            return true;
        }
    }
    return false;
}

static bool parse_word(struct str s, struct fault_rule *r)
{
    static const struct {
        const char *name;
        enum fault_class class;
        uint8_t tm;
    } classes[] = {
        {"any", FAULT_ANY, 0},
        {"request", FAULT_REQUEST, 0},
        {"response", FAULT_RESPONSE, 0},
        {"ack", FAULT_ACK, 0},
        {"send", FAULT_SEND, 0},
        {"write", FAULT_WRITE, 0},
        {"read", FAULT_READ, 0},
        {"atomic", FAULT_ATOMIC, 0},
        {"cm", FAULT_CM, 0},
        {"nak", FAULT_NAK, 0},
        {"rnr-nak", FAULT_RNR_NAK, 0},
        {"tm", FAULT_TM, 0},
        {"tm-eager", FAULT_TM, 1 + TMH_EAGER},
        {"tm-rndv", FAULT_TM, 1 + TMH_RNDV},
        {"tm-fin", FAULT_TM, 1 + TMH_FIN},
        {"tm-no-tag", FAULT_TM, 1 + TMH_NO_TAG},
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (str_is(s, classes[i].name)) {
            r->only = (uint8_t)classes[i].class;
            r->tm = classes[i].tm;
            return true;
        }
    }
    return false;
}

/* Lower case, and - between the words. */
static char plain(char c)
{
    return c == ' ' || c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Does s begin with the name? Then moves s behind it. */
static bool skip_name(struct str *s, const char *name)
{
    size_t len = strlen(name);

    if (s->len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (plain(s->p[i]) != plain(name[i]))
            return false;
    s->p += len;
    s->len -= len;
    return true;
}

/* Is s the name of this opcode, with or without its service? Or the service alone? */
static bool names_opcode(struct str s, unsigned opcode)
{
    static const char rdma[] = "RDMA ";
    const char *name = op_table[opcode].name;
    const char *service = op_service_name((uint8_t)opcode);
    struct str rest = s;

    if (!name)
        return false;
    if (skip_name(&rest, service)) {
        if (rest.len == 0)
            return true;
        if (plain(rest.p[0]) == '-')
            s = (struct str){rest.p + 1, rest.len - 1};
    }
    if (strncmp(name, rdma, strlen(rdma)) == 0 && !(s.len >= 4 && plain(s.p[0]) == 'r' && plain(s.p[1]) == 'd'))
        name += strlen(rdma);
    return skip_name(&s, name) && s.len == 0;
}

static bool parse_opcode(struct str s, struct fault_rule *r)
{
    bool found = false;

    memset(r->opcodes, 0, sizeof(r->opcodes));
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (!names_opcode(s, opcode))
            continue;
        r->opcodes[opcode / 64] |= 1ull << opcode % 64;
        found = true;
    }
    if (found)
        r->only = FAULT_OPCODES;
    return found;
}

bool fault_class_parse(struct str s, struct fault_rule *r)
{
    return parse_word(s, r) || parse_message(s, r) || parse_opcode(s, r);
}

/* --- packets ----------------------------------------------------------------------------------- */

static bool is_nak(const struct fault_pkt *p, bool only_rnr)
{
    uint8_t kind = p->syndrome & AETH_KIND_MASK;

    if (!(op_table[p->opcode].headers & OP_HAS_AETH))
        return false;
    return kind == AETH_RNR || (!only_rnr && kind != AETH_ACK);
}

bool fault_class_has(const struct fault_rule *r, const struct fault_pkt *p)
{
    uint16_t prop = op_table[p->opcode].properties;

    switch ((enum fault_class)r->only) {
    case FAULT_ANY:
        return true;
    case FAULT_REQUEST:
        return prop & OP_IS_REQUEST;
    case FAULT_RESPONSE:
        return prop & OP_IS_RESPONSE;
    case FAULT_ACK:
        return fault_is_ack(p->opcode);
    case FAULT_SEND:
        return prop & OP_IS_SEND;
    case FAULT_WRITE:
        return prop & OP_IS_WRITE;
    case FAULT_READ:
        return prop & OP_IS_READ;
    case FAULT_ATOMIC:
        return prop & OP_IS_ATOMIC;
    case FAULT_CM:
        return p->cm_attribute && (!r->message || r->message == p->cm_attribute);
    case FAULT_NAK:
    case FAULT_RNR_NAK:
        return is_nak(p, r->only == FAULT_RNR_NAK);
    case FAULT_TM:
        return p->tm && (!r->tm || r->tm == p->tm);
    case FAULT_OPCODES:
        return r->opcodes[p->opcode / 64] >> p->opcode % 64 & 1;
    }
    return false;
}
